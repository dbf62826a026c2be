// The command line that the contenders in C++ share.
#pragma once

#include <getopt.h>

#include <cstdlib>
#include <string>

namespace kit {

// The longest message that is accepted, in bytes.
constexpr unsigned message_bytes_max = 64 * 1024 * 1024;

struct Options {
    unsigned short port = 0;
    unsigned threads = 1;
    // echo, acknowledge or fanout.
    std::string service = "echo";
    // Files; empty without TLS.
    std::string certificate;
    std::string key;
    // no-takeover or takeover; empty to negotiate nothing.
    std::string deflate;
};

inline Options parse(int argc, char **argv) {
    const option known[] = {
        {"port", required_argument, nullptr, 'p'},    {"threads", required_argument, nullptr, 'n'},
        {"service", required_argument, nullptr, 's'}, {"tls", required_argument, nullptr, 't'},
        {"deflate", required_argument, nullptr, 'd'}, {},
    };
    Options options;
    for (int found; (found = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (found) {
        case 'p': options.port = static_cast<unsigned short>(std::atoi(optarg)); break;
        case 'n': options.threads = static_cast<unsigned>(std::atoi(optarg)); break;
        case 's': options.service = optarg; break;
        case 't':
            options.certificate = optarg;
            // getopt does not support options with two values.
            options.key = optind < argc ? argv[optind++] : "";
            break;
        case 'd': options.deflate = optarg; break;
        default: std::exit(2);
        }
    }
    return options;
}

} // namespace kit
