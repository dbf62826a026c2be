import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.compression.ZlibCodecFactory;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.websocketx.BinaryWebSocketFrame;
import io.netty.handler.codec.http.websocketx.CloseWebSocketFrame;
import io.netty.handler.codec.http.websocketx.ContinuationWebSocketFrame;
import io.netty.handler.codec.http.websocketx.PingWebSocketFrame;
import io.netty.handler.codec.http.websocketx.TextWebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketClientProtocolConfig;
import io.netty.handler.codec.http.websocketx.WebSocketClientProtocolHandler;
import io.netty.handler.codec.http.websocketx.WebSocketDecoderConfig;
import io.netty.handler.codec.http.websocketx.WebSocketFrame;
import io.netty.handler.codec.http.websocketx.WebSocketFrameAggregator;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolConfig;
import io.netty.handler.codec.http.websocketx.WebSocketServerProtocolHandler;
import io.netty.handler.codec.http.websocketx.extensions.WebSocketClientExtensionHandler;
import io.netty.handler.codec.http.websocketx.extensions.WebSocketServerExtensionHandler;
import io.netty.handler.codec.http.websocketx.extensions.compression.PerMessageDeflateClientExtensionHandshaker;
import io.netty.handler.codec.http.websocketx.extensions.compression.PerMessageDeflateServerExtensionHandshaker;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** Echoes messages with Netty, as a server or as a client. */
final class Peer {
  private static final int MESSAGE_BYTES_MAX = 2 << 20;
  private static final int HEAD_BYTES_MAX = 64 << 10;

  private final Map<String, String> options = new HashMap<>();

  private Peer(String[] words) {
    for (String word : words) {
      String[] parts = word.split("=", 2);
      options.put(parts[0], parts[1]);
    }
  }

  public static void main(String[] arguments) throws Exception {
    int options = arguments[0].equals("connect") ? 2 : 1;
    var peer = new Peer(Arrays.copyOfRange(arguments, options, arguments.length));
    var group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    if (arguments[0].equals("connect")) {
      var uri = URI.create(arguments[1]);
      new Bootstrap()
          .group(group)
          .channel(NioSocketChannel.class)
          .handler(peer.client(uri))
          .connect(uri.getHost(), uri.getPort())
          .sync()
          .channel()
          .closeFuture()
          .sync();
      System.exit(0);
    }
    var listener =
        new ServerBootstrap()
            .group(group)
            .channel(NioServerSocketChannel.class)
            .childHandler(peer.server())
            .bind("127.0.0.1", 0)
            .sync()
            .channel();
    System.out.println("ws://127.0.0.1:" + ((InetSocketAddress) listener.localAddress()).getPort());
  }

  private ChannelHandler server() {
    var decoder = decoderConfig();
    var protocol =
        WebSocketServerProtocolConfig.newBuilder()
            .websocketPath("/")
            .checkStartsWith(true)
            .decoderConfig(decoder)
            .build();
    return new ChannelInitializer<SocketChannel>() {
      @Override
      protected void initChannel(SocketChannel channel) {
        var pipeline = channel.pipeline();
        pipeline.addLast(new HttpServerCodec(), new HttpObjectAggregator(HEAD_BYTES_MAX));
        if (deflates()) {
          pipeline.addLast(new WebSocketServerExtensionHandler(serverDeflate()));
        }
        pipeline.addLast(new WebSocketServerProtocolHandler(protocol));
        pipeline.addLast(new WebSocketFrameAggregator(MESSAGE_BYTES_MAX), new Echo(fragment()));
      }
    };
  }

  private ChannelHandler client(URI uri) {
    var protocol =
        WebSocketClientProtocolConfig.newBuilder()
            .webSocketUri(uri)
            .allowExtensions(deflates())
            .maxFramePayloadLength(MESSAGE_BYTES_MAX)
            // The default would close the socket without answering the Close frame.
            .handleCloseFrames(false)
            .build();
    return new ChannelInitializer<SocketChannel>() {
      @Override
      protected void initChannel(SocketChannel channel) {
        var pipeline = channel.pipeline();
        pipeline.addLast(new HttpClientCodec(), new HttpObjectAggregator(HEAD_BYTES_MAX));
        if (deflates()) {
          pipeline.addLast(new WebSocketClientExtensionHandler(clientDeflate()));
        }
        pipeline.addLast(new WebSocketClientProtocolHandler(protocol));
        pipeline.addLast(new WebSocketFrameAggregator(MESSAGE_BYTES_MAX), new Echo(fragment()));
      }
    };
  }

  private boolean deflates() {
    return options.containsKey("deflate");
  }

  /** The length of fragments in bytes; 0 to send messages whole. */
  private int fragment() {
    return Integer.parseInt(options.getOrDefault("fragment", "0"));
  }

  private WebSocketDecoderConfig decoderConfig() {
    return WebSocketDecoderConfig.newBuilder()
        .maxFramePayloadLength(MESSAGE_BYTES_MAX)
        .allowExtensions(deflates())
        .build();
  }

  private PerMessageDeflateServerExtensionHandshaker serverDeflate() {
    return new PerMessageDeflateServerExtensionHandshaker(
        6,
        ZlibCodecFactory.isSupportingWindowSizeAndMemLevel(),
        PerMessageDeflateServerExtensionHandshaker.MAX_WINDOW_SIZE,
        true,
        false,
        MESSAGE_BYTES_MAX);
  }

  private PerMessageDeflateClientExtensionHandshaker clientDeflate() {
    return new PerMessageDeflateClientExtensionHandshaker(
        6,
        ZlibCodecFactory.isSupportingWindowSizeAndMemLevel(),
        Integer.parseInt(options.getOrDefault("server_max_window_bits", "15")),
        true,
        options.containsKey("server_no_context_takeover"),
        MESSAGE_BYTES_MAX);
  }

  /** Flushes everything that was written while handling a read at once, at its end. */
  private static final class Echo extends SimpleChannelInboundHandler<WebSocketFrame> {
    private final int length;

    Echo(int length) {
      this.length = length;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, WebSocketFrame message) {
      if (message instanceof CloseWebSocketFrame) {
        context.writeAndFlush(message.retain()).addListener(ChannelFutureListener.CLOSE);
        return;
      }
      var payload = message.content();
      if (length == 0 || payload.readableBytes() <= length) {
        context.write(message.retain());
        return;
      }
      context.write(first(message, payload.readRetainedSlice(length)));
      while (payload.readableBytes() > length) {
        context.write(new PingWebSocketFrame());
        context.write(new ContinuationWebSocketFrame(false, 0, payload.readRetainedSlice(length)));
      }
      var rest = payload.readRetainedSlice(payload.readableBytes());
      context.write(new ContinuationWebSocketFrame(true, 0, rest));
    }

    private static WebSocketFrame first(WebSocketFrame message, ByteBuf piece) {
      return message instanceof TextWebSocketFrame
          ? new TextWebSocketFrame(false, 0, piece)
          : new BinaryWebSocketFrame(false, 0, piece);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      cause.printStackTrace();
      System.exit(1);
    }
  }
}
