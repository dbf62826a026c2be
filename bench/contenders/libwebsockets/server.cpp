// A WebSocket server on libwebsockets, with one thread: Debian's library is built for only one.

#include <libwebsockets.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "options.hpp"

namespace {

// The longest piece of a message that the library passes on, and each connection's buffer for it.
constexpr std::size_t piece_bytes_max = 16 * 1024;

// A connection with this much to write is not read from.
constexpr std::size_t queue_bytes_max = 4 * 1024 * 1024;

// A piece of a message, after the space that the library needs for the frame header.
struct Piece {
    Piece(const void *payload, std::size_t length, bool binary, bool first, bool last)
        : bytes(LWS_PRE + length), binary(binary), first(first), last(last) {
        if (length != 0) {
            std::memcpy(bytes.data() + LWS_PRE, payload, length);
        }
    }

    std::size_t length() const { return bytes.size() - LWS_PRE; }

    std::vector<unsigned char> bytes;
    bool binary;
    bool first;
    bool last;
};

class Connection {
public:
    explicit Connection(lws *wsi) : wsi_(wsi) {}

    void send(std::shared_ptr<Piece> piece) {
        queue_bytes_ += piece->length();
        queue_.push_back(std::move(piece));
        if (queue_bytes_ > queue_bytes_max && !paused_) {
            paused_ = true;
            lws_rx_flow_control(wsi_, 0);
        }
        lws_callback_on_writable(wsi_);
    }

    // Writes until the socket accepts no more, and returns whether the connection may continue.
    bool write() {
        while (!queue_.empty()) {
            Piece &piece = *queue_.front();
            const int kind = piece.binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT;
            const int flags = lws_write_ws_flags(kind, piece.first, piece.last);
            const int written = lws_write(wsi_, piece.bytes.data() + LWS_PRE, piece.length(),
                                          static_cast<lws_write_protocol>(flags));
            if (written < static_cast<int>(piece.length())) {
                return false;
            }
            queue_bytes_ -= piece.length();
            queue_.pop_front();
            if (lws_send_pipe_choked(wsi_)) {
                break;
            }
        }
        if (!queue_.empty()) {
            lws_callback_on_writable(wsi_);
        }
        if (paused_ && queue_bytes_ <= queue_bytes_max / 2) {
            paused_ = false;
            lws_rx_flow_control(wsi_, 1);
        }
        return true;
    }

    // The received part of an incomplete message.
    std::string message;
    std::size_t message_bytes = 0;

private:
    lws *wsi_;
    std::deque<std::shared_ptr<Piece>> queue_;
    std::size_t queue_bytes_ = 0;
    bool paused_ = false;
};

class Server {
public:
    explicit Server(const kit::Options &options)
        : service_(options.service),
          protocols_{{"http", on_event, sizeof(Connection *), piece_bytes_max, 0, nullptr, 0}, {}},
          extensions_{{"permessage-deflate", lws_extension_callback_pm_deflate, "permessage-deflate"}, {}} {
        lws_context_creation_info info = {};
        info.port = options.port;
        info.iface = "127.0.0.1";
        info.protocols = protocols_;
        info.extensions = options.deflate.empty() ? nullptr : extensions_;
        info.user = this;
        // The library reads at most this much at a time; by default 4 KiB.
        info.pt_serv_buf_size = piece_bytes_max;
        info.options = LWS_SERVER_OPTION_VALIDATE_UTF8 | LWS_SERVER_OPTION_DISABLE_IPV6;
        if (!options.certificate.empty()) {
            info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
            info.ssl_cert_filepath = options.certificate.c_str();
            info.ssl_private_key_filepath = options.key.c_str();
        }
        context_ = lws_create_context(&info);
        if (context_ == nullptr) {
            std::fprintf(stderr, "cannot serve on port %d\n", options.port);
            std::exit(1);
        }
    }

    void run() {
        while (lws_service(context_, 0) >= 0) {
        }
    }

private:
    static int on_event(lws *wsi, lws_callback_reasons reason, void *user, void *in, std::size_t length) {
        auto *server = static_cast<Server *>(lws_context_user(lws_get_context(wsi)));
        auto **connection = static_cast<Connection **>(user);
        switch (reason) {
        case LWS_CALLBACK_ESTABLISHED:
            *connection = new Connection(wsi);
            server->connections_.insert(*connection);
            return 0;
        case LWS_CALLBACK_CLOSED:
            server->connections_.erase(*connection);
            delete *connection;
            return 0;
        case LWS_CALLBACK_RECEIVE: return server->receive(wsi, **connection, in, length) ? 0 : -1;
        case LWS_CALLBACK_SERVER_WRITEABLE: return (*connection)->write() ? 0 : -1;
        default: return lws_callback_http_dummy(wsi, reason, user, in, length);
        }
    }

    // Handles a piece of a message, and returns whether the connection may continue.
    bool receive(lws *wsi, Connection &connection, const void *payload, std::size_t length) {
        const bool first = lws_is_first_fragment(wsi);
        const bool last = lws_is_final_fragment(wsi);
        const bool binary = lws_frame_is_binary(wsi);
        connection.message_bytes = (first ? 0 : connection.message_bytes) + length;
        if (connection.message_bytes > kit::message_bytes_max) {
            return false;
        }
        if (service_ == "acknowledge") {
            if (last) {
                const std::string count = std::to_string(connection.message_bytes);
                connection.send(std::make_shared<Piece>(count.data(), count.size(), false, true, true));
            }
        } else if (service_ == "fanout") {
            connection.message.append(static_cast<const char *>(payload), length);
            if (last) {
                publish(connection.message, binary);
                connection.message.clear();
            }
        } else {
            connection.send(std::make_shared<Piece>(payload, length, binary, first, last));
        }
        return true;
    }

    void publish(const std::string &payload, bool binary) {
        const auto piece = std::make_shared<Piece>(payload.data(), payload.size(), binary, true, true);
        for (Connection *connection : connections_) {
            connection->send(piece);
        }
    }

    const std::string service_;
    const lws_protocols protocols_[2];
    const lws_extension extensions_[2];
    lws_context *context_ = nullptr;
    std::unordered_set<Connection *> connections_;
};

} // namespace

int main(int argc, char **argv) {
    lws_set_log_level(LLL_ERR, nullptr);
    Server(kit::parse(argc, argv)).run();
}
