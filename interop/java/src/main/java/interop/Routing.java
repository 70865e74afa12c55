package interop;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.rsocket.Payload;
import io.rsocket.metadata.CompositeMetadata;
import io.rsocket.metadata.CompositeMetadataCodec;
import io.rsocket.metadata.RoutingMetadata;
import io.rsocket.metadata.TaggingMetadataCodec;
import io.rsocket.metadata.WellKnownMimeType;
import io.rsocket.util.DefaultPayload;
import java.util.List;

/** Requests whose composite metadata contains the route. */
final class Routing {
  private static final ByteBufAllocator ALLOCATOR = ByteBufAllocator.DEFAULT;

  private Routing() {}

  /** The first tag of the routing entry, or "" if there is none. */
  static String routeOf(Payload payload) {
    for (CompositeMetadata.Entry entry : new CompositeMetadata(payload.sliceMetadata(), false)) {
      if (WellKnownMimeType.MESSAGE_RSOCKET_ROUTING.getString().equals(entry.getMimeType())) {
        return new RoutingMetadata(entry.getContent()).iterator().next();
      }
    }
    return "";
  }

  /** A request for {@code route}; {@code note} becomes a second entry of the metadata unless it is null. */
  static Payload request(String route, byte[] data, String note) {
    CompositeByteBuf metadata = ALLOCATOR.compositeBuffer();
    ByteBuf tags = TaggingMetadataCodec.createRoutingMetadata(ALLOCATOR, List.of(route)).getContent();
    CompositeMetadataCodec.encodeAndAddMetadata(
        metadata, ALLOCATOR, WellKnownMimeType.MESSAGE_RSOCKET_ROUTING, tags);
    if (note != null) {
      CompositeMetadataCodec.encodeAndAddMetadata(
          metadata, ALLOCATOR, WellKnownMimeType.TEXT_PLAIN, ByteBufUtil.writeUtf8(ALLOCATOR, note));
    }
    byte[] bytes = ByteBufUtil.getBytes(metadata);
    metadata.release();
    return DefaultPayload.create(Unpooled.wrappedBuffer(data), Unpooled.wrappedBuffer(bytes));
  }
}
