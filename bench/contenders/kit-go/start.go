// Package kit is the code that the contenders in Go share.
package kit

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
)

// MessageBytesMax is the longest message that is accepted.
const MessageBytesMax = 64 << 20

// Options are the options with which a server was started.
type Options struct {
	// Service is echo, acknowledge or fanout.
	Service string
	// Deflate is no-takeover or takeover, or empty to negotiate nothing.
	Deflate string
}

// Start parses the command line, limits the threads and listens. It exits if that fails.
func Start() (net.Listener, Options) {
	var options Options
	port := flag.Int("port", 0, "the port to listen on")
	threads := flag.Int("threads", 1, "the number of threads that run Go code at a time")
	flag.StringVar(&options.Service, "service", "echo", "echo, acknowledge or fanout")
	flag.StringVar(&options.Deflate, "deflate", "", "no-takeover or takeover")
	certificate := flag.String("tls", "", "the certificate file, followed by its key file")
	flag.Parse()
	// Package flag does not support options with two values, and stops at the second value.
	key := flag.Arg(0)
	if *certificate != "" && flag.NArg() > 1 {
		flag.CommandLine.Parse(flag.Args()[1:])
	}
	runtime.GOMAXPROCS(*threads)

	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, key)
		if err != nil {
			log.Fatal(err)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	return listener, options
}
