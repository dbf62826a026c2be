// A WebSocket server on Boost.Beast: one io_context that all threads run, a strand for each
// connection.

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "options.hpp"

namespace beast = boost::beast;
namespace net = boost::asio;
namespace ssl = boost::asio::ssl;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using tcp = net::ip::tcp;

namespace {

using Plain = beast::tcp_stream;
using Encrypted = beast::ssl_stream<beast::tcp_stream>;

struct Message {
    std::string payload;
    bool text;
};

// The sessions that receive a fan-out.
template <class Session>
class Room {
public:
    void join(Session *session) {
        const std::lock_guard lock(mutex_);
        sessions_.insert(session);
    }

    void leave(Session *session) {
        const std::lock_guard lock(mutex_);
        sessions_.erase(session);
    }

    void send(std::shared_ptr<const Message> message) {
        // Sessions are kept alive while they are notified, without holding the lock.
        std::vector<std::weak_ptr<Session>> all;
        {
            const std::lock_guard lock(mutex_);
            all.reserve(sessions_.size());
            for (Session *session : sessions_) {
                all.push_back(session->weak_from_this());
            }
        }
        for (const auto &one : all) {
            if (const auto session = one.lock()) {
                session->deliver(message);
            }
        }
    }

private:
    std::mutex mutex_;
    std::unordered_set<Session *> sessions_;
};

template <class Next>
class Session : public std::enable_shared_from_this<Session<Next>> {
public:
    template <class... Arguments>
    Session(const kit::Options &options, Room<Session> &room, Arguments &&...arguments)
        : options_(options), room_(room), stream_(std::forward<Arguments>(arguments)...) {}

    ~Session() { room_.leave(this); }

    void run() {
        net::dispatch(stream_.get_executor(), [self = this->shared_from_this()] { self->start(); });
    }

    // Writes a message after those that are already waiting.
    void deliver(std::shared_ptr<const Message> message) {
        net::post(stream_.get_executor(), [self = this->shared_from_this(), message = std::move(message)]() mutable {
            self->queue_.push_back(std::move(message));
            if (self->queue_.size() == 1) {
                self->write_queued();
            }
        });
    }

private:
    void start() {
        if constexpr (std::is_same_v<Next, Encrypted>) {
            beast::get_lowest_layer(stream_).expires_after(std::chrono::seconds(30));
            stream_.next_layer().async_handshake(ssl::stream_base::server,
                                                 [self = this->shared_from_this()](error_code error) {
                                                     if (!error) {
                                                         self->accept();
                                                     }
                                                 });
        } else {
            accept();
        }
    }

    void accept() {
        // The WebSocket stream has its own timeouts.
        beast::get_lowest_layer(stream_).expires_never();
        stream_.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
        // One frame per message: by default, messages are split into frames of 4 KiB.
        stream_.auto_fragment(false);
        stream_.read_message_max(kit::message_bytes_max);
        websocket::permessage_deflate deflate;
        deflate.server_enable = !options_.deflate.empty();
        deflate.server_no_context_takeover = options_.deflate == "no-takeover";
        deflate.client_no_context_takeover = options_.deflate == "no-takeover";
        stream_.set_option(deflate);
        stream_.async_accept([self = this->shared_from_this()](error_code error) {
            if (!error) {
                self->open();
            }
        });
    }

    void open() {
        if (options_.service == "fanout") {
            room_.join(this);
        }
        read();
    }

    void read() {
        stream_.async_read(buffer_, [self = this->shared_from_this()](error_code error, std::size_t) {
            if (!error) {
                self->handle();
            }
        });
    }

    void handle() {
        if (options_.service == "acknowledge") {
            count_ = std::to_string(buffer_.size());
            buffer_.consume(buffer_.size());
            stream_.text(true);
            write(net::buffer(count_));
        } else if (options_.service == "fanout") {
            room_.send(std::make_shared<const Message>(
                Message{beast::buffers_to_string(buffer_.data()), stream_.got_text()}));
            buffer_.consume(buffer_.size());
            read();
        } else {
            stream_.text(stream_.got_text());
            write(buffer_.data());
        }
    }

    void write(net::const_buffer payload) {
        stream_.async_write(payload, [self = this->shared_from_this()](error_code error, std::size_t) {
            if (!error) {
                self->buffer_.consume(self->buffer_.size());
                self->read();
            }
        });
    }

    void write_queued() {
        stream_.text(queue_.front()->text);
        stream_.async_write(net::buffer(queue_.front()->payload),
                            [self = this->shared_from_this()](error_code error, std::size_t) {
                                if (error) {
                                    return;
                                }
                                self->queue_.pop_front();
                                if (!self->queue_.empty()) {
                                    self->write_queued();
                                }
                            });
    }

    const kit::Options &options_;
    Room<Session> &room_;
    websocket::stream<Next> stream_;
    beast::flat_buffer buffer_;
    std::string count_;
    std::deque<std::shared_ptr<const Message>> queue_;
};

template <class Next>
class Server {
public:
    explicit Server(const kit::Options &options)
        : options_(options), context_(static_cast<int>(options.threads)),
          acceptor_(context_, {net::ip::make_address("127.0.0.1"), options.port}), tls_(ssl::context::tls_server) {
        if constexpr (std::is_same_v<Next, Encrypted>) {
            tls_.use_certificate_chain_file(options.certificate);
            tls_.use_private_key_file(options.key, ssl::context::pem);
        }
    }

    void run() {
        accept();
        std::vector<std::thread> threads;
        for (unsigned index = 1; index < options_.threads; index++) {
            threads.emplace_back([this] { context_.run(); });
        }
        context_.run();
    }

private:
    void accept() {
        acceptor_.async_accept(net::make_strand(context_), [this](error_code error, tcp::socket socket) {
            if (!error) {
                serve(std::move(socket));
            }
            accept();
        });
    }

    void serve(tcp::socket socket) {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        if constexpr (std::is_same_v<Next, Encrypted>) {
            std::make_shared<Session<Next>>(options_, room_, std::move(socket), tls_)->run();
        } else {
            std::make_shared<Session<Next>>(options_, room_, std::move(socket))->run();
        }
    }

    const kit::Options &options_;
    Room<Session<Next>> room_;
    net::io_context context_;
    tcp::acceptor acceptor_;
    ssl::context tls_;
};

} // namespace

int main(int argc, char **argv) try {
    const kit::Options options = kit::parse(argc, argv);
    if (options.certificate.empty()) {
        Server<Plain>(options).run();
    } else {
        Server<Encrypted>(options).run();
    }
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
