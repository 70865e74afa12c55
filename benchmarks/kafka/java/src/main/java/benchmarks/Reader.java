package benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;

/** Spark, which reads topics of the broker at ADDRESS with its Kafka source. */
public final class Reader {
    private final SparkSession spark;
    private final String address;
    private StreamingQuery query;

    private Reader(String address) {
        this.address = address;
        spark = SparkSession.builder()
                .master("local[2]")
                .config("spark.ui.enabled", "false")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.sql.session.timeZone", "UTC")
                .getOrCreate();
    }

    public static void main(String[] arguments) throws Exception {
        Reader self = new Reader(arguments[0]);
        try {
            Requests.answer(self::run);
        } finally {
            self.spark.stop();
        }
    }

    private void run(String scenario, JsonNode request) throws Exception {
        switch (scenario) {
            case "batch" -> batch(request.get(1).asText());
            case "stream" -> stream(request.get(1).asText(), request.get(2).asText());
            case "start" -> start(request.get(1).asText(), request.get(2).asText(), request.get(3).asText());
            case "settle" -> query.processAllAvailable();
            case "follow" -> follow(events(request.get(1).asText()), request.get(2).asText());
            case "floor" -> follow(rate(), request.get(1).asText());
            case "stop" -> query.stop();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    private void batch(String topic) {
        spark.read()
                .format("kafka")
                .option("kafka.bootstrap.servers", address)
                .option("subscribe", topic)
                .load()
                .write()
                .format("noop")
                .mode("overwrite")
                .save();
    }

    private void stream(String topic, String rowsPerBatch) throws Exception {
        topic(topic, rowsPerBatch)
                .writeStream()
                .format("noop")
                .option("checkpointLocation", Files.createTempDirectory("checkpoint-").toString())
                .trigger(Trigger.AvailableNow())
                .start()
                .awaitTermination();
    }

    /** Starts to read a topic to the noop sink. */
    private void start(String topic, String rowsPerBatch, String checkpoint) throws Exception {
        query = topic(topic, rowsPerBatch)
                .writeStream()
                .format("noop")
                .option("checkpointLocation", checkpoint)
                .start();
    }

    /** Starts to write the column "event", in microseconds since 1970, to a folder of Parquet files. */
    private void follow(Dataset<Row> events, String folder) throws Exception {
        query = events.writeStream()
                .format("parquet")
                .option("checkpointLocation", folder + "-checkpoint")
                .start(folder);
    }

    private Dataset<Row> topic(String topic, String rowsPerBatch) {
        return spark.readStream()
                .format("kafka")
                .option("kafka.bootstrap.servers", address)
                .option("subscribe", topic)
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", rowsPerBatch)
                .load();
    }

    private Dataset<Row> events(String topic) {
        return topic(topic, "1000000").selectExpr("CAST(conv(hex(substring(value, 1, 8)), 16, 10) AS BIGINT) AS event");
    }

    /** One row a second, which Spark emits when its second is over. */
    private Dataset<Row> rate() {
        return spark.readStream()
                .format("rate")
                .option("rowsPerSecond", "1")
                .load()
                .selectExpr("unix_micros(timestamp) + 1000000 AS event");
    }
}
