package interop;

import io.rsocket.transport.ClientTransport;
import io.rsocket.transport.ServerTransport;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.client.WebsocketClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.transport.netty.server.WebsocketServerTransport;

/** The transports by their names in the programs: {@code tcp} and {@code ws}. */
final class Transports {
  private Transports() {}

  static ClientTransport client(String name, String host, int port) {
    return switch (name) {
      case "tcp" -> TcpClientTransport.create(host, port);
      case "ws" -> WebsocketClientTransport.create(host, port);
      default -> throw new IllegalArgumentException("no transport " + name);
    };
  }

  static ServerTransport<CloseableChannel> server(String name) {
    return switch (name) {
      case "tcp" -> TcpServerTransport.create("127.0.0.1", 0);
      case "ws" -> WebsocketServerTransport.create("127.0.0.1", 0);
      default -> throw new IllegalArgumentException("no transport " + name);
    };
  }
}
