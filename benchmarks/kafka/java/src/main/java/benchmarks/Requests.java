package benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Answers the requests on standard input, as benchmarks/worker.py does. */
final class Requests {
    interface Client {
        /** Runs the scenario in a request: its name and its arguments. */
        void run(String scenario, JsonNode request) throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Requests() {}

    /** Says that it is ready, and answers each request with its seconds and the CPU seconds so far. */
    static void answer(Client client) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println("\"connected\"");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            long begun = System.nanoTime();
            if (!request.isEmpty()) {
                client.run(request.get(0).asText(), request);
            }
            double seconds = (System.nanoTime() - begun) / 1e9;
            out.println(JSON.writeValueAsString(Map.of("seconds", seconds, "cpu", PROCESS.getProcessCpuTime() / 1e9)));
        }
    }
}
