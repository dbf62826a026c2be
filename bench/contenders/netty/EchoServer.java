import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.compression.ZlibCodecFactory;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.websocketx.TextWebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketDecoderConfig;
import io.netty.handler.codec.http.websocketx.WebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketFrameAggregator;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolConfig;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolHandler;
import io.netty.handler.codec.http.websocketx.extensions.WebSocketServerExtensionHandler;
import io.netty.handler.codec.http.websocketx.extensions.compression.PerMessageDeflateServerExtensionHandshaker;
import io.netty.handler.codec.http.websocketx.extensions.compression.WebSocketServerCompressionHandler;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.File;
import java.util.HashMap;
import java.util.Map;

/** An echo server on Netty's own WebSocket codec, based on Netty's examples. */
final class EchoServer {
  private static final int MESSAGE_BYTES_MAX = 64 << 20;
  private static final int REQUEST_BYTES_MAX = 64 << 10;

  private EchoServer() {}

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = new HashMap<>(Map.of("--service", "echo"));
    for (int i = 0; i < arguments.length; i += 2) {
      options.put(arguments[i], arguments[i + 1]);
      if (arguments[i].equals("--tls")) {
        options.put("key", arguments[++i + 1]);
      }
    }

    // One group accepts and serves, so that N threads are N threads.
    var group =
        new MultiThreadIoEventLoopGroup(
            Integer.parseInt(options.get("--threads")), EpollIoHandler.newFactory());
    new ServerBootstrap()
        .group(group)
        .channel(EpollServerSocketChannel.class)
        .childHandler(new Pipeline(options))
        .bind("127.0.0.1", Integer.parseInt(options.get("--port")))
        .sync();
  }

  /** Assembles the handlers of a connection. */
  private static final class Pipeline extends ChannelInitializer<SocketChannel> {
    private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
    private final String service;
    private final String deflate;
    private final SslContext tls;
    private final WebSocketServerProtocolConfig protocol;

    Pipeline(Map<String, String> options) throws Exception {
      service = options.get("--service");
      deflate = options.get("--deflate");
      tls = options.containsKey("--tls") ? tls(options.get("--tls"), options.get("key")) : null;
      protocol =
          WebSocketServerProtocolConfig.newBuilder()
              .websocketPath("/")
              .checkStartsWith(true)
              .decoderConfig(
                  WebSocketDecoderConfig.newBuilder()
                      .maxFramePayloadLength(MESSAGE_BYTES_MAX)
                      .allowExtensions(deflate != null)
                      .build())
              .build();
    }

    private static SslContext tls(String certificate, String key) throws Exception {
      return SslContextBuilder.forServer(new File(certificate), new File(key))
          .sslProvider(SslProvider.OPENSSL)
          .build();
    }

    @Override
    protected void initChannel(SocketChannel channel) {
      var pipeline = channel.pipeline();
      if (tls != null) {
        pipeline.addLast(tls.newHandler(channel.alloc()));
      }
      pipeline.addLast(new HttpServerCodec());
      pipeline.addLast(new HttpObjectAggregator(REQUEST_BYTES_MAX));
      if (deflate != null) {
        pipeline.addLast(deflate.equals("takeover") ? takeover() : noTakeover());
      }
      pipeline.addLast(new WebSocketServerProtocolHandler(protocol));
      pipeline.addLast(new WebSocketFrameAggregator(MESSAGE_BYTES_MAX));
      pipeline.addLast(
          switch (service) {
            case "acknowledge" -> new Acknowledge();
            case "fanout" -> new Fanout(connections);
            default -> new Echo();
          });
    }

    private static ChannelHandler takeover() {
      return new WebSocketServerCompressionHandler(MESSAGE_BYTES_MAX);
    }

    /** The same, but both contexts are dropped after each message. */
    private static ChannelHandler noTakeover() {
      return new WebSocketServerExtensionHandler(
          new PerMessageDeflateServerExtensionHandshaker(
              6,
              ZlibCodecFactory.isSupportingWindowSizeAndMemLevel(),
              PerMessageDeflateServerExtensionHandshaker.MAX_WINDOW_SIZE,
              true,
              true,
              MESSAGE_BYTES_MAX));
    }
  }

  /** Flushes everything that was written while handling a read at once, at its end. */
  private abstract static class Service extends SimpleChannelInboundHandler<WebSocketFrame> {
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      System.err.println(cause);
      context.close();
    }
  }

  private static final class Acknowledge extends Service {
    @Override
    protected void channelRead0(ChannelHandlerContext context, WebSocketFrame message) {
      String bytes = Integer.toString(message.content().readableBytes());
      context.write(new TextWebSocketFrame(ByteBufUtil.writeAscii(context.alloc(), bytes)));
    }
  }

  private static final class Echo extends Service {
    @Override
    protected void channelRead0(ChannelHandlerContext context, WebSocketFrame message) {
      context.write(message.retain());
    }
  }

  private static final class Fanout extends Service {
    private final ChannelGroup connections;

    Fanout(ChannelGroup connections) {
      this.connections = connections;
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
      // A connection joins after its handshake; the group removes it when it closes.
      if (event instanceof WebSocketServerProtocolHandler.HandshakeComplete) {
        connections.add(context.channel());
      }
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, WebSocketFrame message) {
      connections.write(message.retain());
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      connections.flush();
    }
  }
}
