package benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends records to the broker at ADDRESS. */
public final class Producer {
    private static final int RECORD_BYTES = 128;

    private final KafkaProducer<byte[], byte[]> producer;
    private final Admin admin;

    private Producer(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("acks", "all");
        settings.put("batch.size", 65536);
        settings.put("linger.ms", 5);
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        admin = Admin.create(Map.of("bootstrap.servers", address));
    }

    public static void main(String[] arguments) throws Exception {
        Producer self = new Producer(arguments[0]);
        try {
            Requests.answer(self::run);
        } finally {
            self.producer.close();
            self.admin.close();
        }
    }

    private void run(String scenario, JsonNode request) throws Exception {
        String topic = request.get(1).asText();
        switch (scenario) {
            case "create" -> create(topic, request.get(2).asInt());
            case "publish" -> publish(topic, request.get(2).asInt());
            case "ticks" -> ticks(topic, request.get(2).asInt(), request.get(3).asLong());
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            default -> throw new IllegalArgumentException(scenario);
        }
    }

    /** Creates a topic, with an event in each partition: now the broker is ready to append to it. */
    private void create(String topic, int partitions) throws Exception {
        NewTopic wanted = new NewTopic(topic, Optional.of(partitions), Optional.empty());
        admin.createTopics(List.of(wanted)).all().get();
        for (int i = 0; i < partitions; i++) {
            producer.send(new ProducerRecord<>(topic, i, null, event())).get();
        }
    }

    /** Sends records as fast as the broker takes them, until it has acknowledged the last one. */
    private void publish(String topic, int count) throws Exception {
        byte[] record = new byte[RECORD_BYTES];
        for (int i = 0; i < RECORD_BYTES; i++) {
            record[i] = (byte) i;
        }
        Future<RecordMetadata> last = null;
        for (int i = 0; i < count; i++) {
            last = producer.send(new ProducerRecord<>(topic, record));
        }
        producer.flush();
        last.get();
    }

    /** Sends an event every so many milliseconds. */
    private void ticks(String topic, int count, long millis) throws Exception {
        for (int i = 0; i < count; i++) {
            Thread.sleep(millis);
            producer.send(new ProducerRecord<>(topic, event()));
        }
        producer.flush();
    }

    /** Returns a record that begins with the time in microseconds since 1970. */
    private static byte[] event() {
        Instant now = Instant.now();
        ByteBuffer record = ByteBuffer.allocate(RECORD_BYTES);
        record.putLong(now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000);
        return record.array();
    }
}
