// A WebSocket server on uWebSockets: one App per thread, all of them listening on one port.

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "App.h"
#include "options.hpp"

namespace {

uWS::CompressOptions compression(const std::string &deflate) {
    if (deflate == "takeover") {
        return static_cast<uWS::CompressOptions>(uWS::DEDICATED_COMPRESSOR | uWS::DEDICATED_DECOMPRESSOR);
    }
    if (deflate == "no-takeover") {
        return static_cast<uWS::CompressOptions>(uWS::SHARED_COMPRESSOR | uWS::SHARED_DECOMPRESSOR);
    }
    return uWS::DISABLED;
}

struct Connection {};

template <bool SSL>
class Server {
public:
    explicit Server(const kit::Options &options)
        : options_(options), compress_(!options.deflate.empty()), apps_(options.threads), ready_(options.threads) {}

    void run() {
        std::vector<std::jthread> threads;
        for (unsigned index = 1; index < options_.threads; index++) {
            threads.emplace_back([this, index] { serve(index); });
        }
        serve(0);
    }

private:
    using Socket = uWS::WebSocket<SSL, true, Connection>;

    // An App and the event loop of its thread.
    struct Worker {
        uWS::TemplatedApp<SSL> *app;
        uWS::Loop *loop;
    };

    void serve(unsigned index) {
        uWS::TemplatedApp<SSL> app({
            .key_file_name = options_.key.c_str(),
            .cert_file_name = options_.certificate.c_str(),
        });
        apps_[index] = {&app, uWS::Loop::get()};
        // No connection is accepted before publishing to all threads is possible.
        ready_.arrive_and_wait();

        app.template ws<Connection>("/*", behavior(index)).listen("127.0.0.1", options_.port, [this](auto *socket) {
            if (!socket) {
                std::fprintf(stderr, "cannot listen on port %d\n", options_.port);
                std::exit(1);
            }
        });
        app.run();
    }

    typename uWS::TemplatedApp<SSL>::template WebSocketBehavior<Connection> behavior(unsigned index) {
        typename uWS::TemplatedApp<SSL>::template WebSocketBehavior<Connection> behavior;
        behavior.compression = compression(options_.deflate);
        behavior.maxPayloadLength = kit::message_bytes_max;
        // Beyond this many unsent bytes, messages would be dropped; 0 drops none.
        behavior.maxBackpressure = 0;
        if (options_.service == "acknowledge") {
            behavior.message = [this](Socket *socket, std::string_view message, uWS::OpCode) {
                socket->send(std::to_string(message.size()), uWS::TEXT, compress_);
            };
        } else if (options_.service == "fanout") {
            behavior.open = [](Socket *socket) { socket->subscribe("all"); };
            behavior.message = [this, index](Socket *, std::string_view message, uWS::OpCode opcode) {
                publish(index, message, opcode);
            };
        } else {
            behavior.message = [this](Socket *socket, std::string_view message, uWS::OpCode opcode) {
                socket->send(message, opcode, compress_);
            };
        }
        return behavior;
    }

    // An App publishes only to its own connections, so each thread has to be notified.
    void publish(unsigned from, std::string_view message, uWS::OpCode opcode) {
        for (unsigned index = 0; index < apps_.size(); index++) {
            if (index == from) {
                apps_[index].app->publish("all", message, opcode, compress_);
            } else {
                apps_[index].loop->defer([this, app = apps_[index].app, message = std::string(message), opcode] {
                    app->publish("all", message, opcode, compress_);
                });
            }
        }
    }

    const kit::Options options_;
    const bool compress_;
    std::vector<Worker> apps_;
    std::latch ready_;
};

} // namespace

int main(int argc, char **argv) {
    const kit::Options options = kit::parse(argc, argv);
    if (options.certificate.empty()) {
        Server<false>(options).run();
    } else {
        Server<true>(options).run();
    }
}
