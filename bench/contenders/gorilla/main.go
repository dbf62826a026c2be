// A WebSocket server over gorilla/websocket.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"

	"github.com/gorilla/websocket"
)

// messageBytesMax is the longest message that is taken; without it there is no limit.
const messageBytesMax = 64 << 20

func main() {
	port := flag.Int("port", 0, "the port to listen on")
	threads := flag.Int("threads", 1, "the threads that run Go code at a time")
	service := flag.String("service", "echo", "echo, acknowledge or fanout")
	certificate := flag.String("tls", "", "a certificate, followed by its key")
	deflate := flag.String("deflate", "", "no-takeover")
	flag.Parse()
	key := flag.Arg(0)
	if *certificate != "" && flag.NArg() > 1 {
		flag.CommandLine.Parse(flag.Args()[1:])
	}
	if *deflate != "" && *deflate != "no-takeover" {
		log.Fatalf("no deflate %q", *deflate)
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

	var serve func(*websocket.Conn)
	switch *service {
	case "echo":
		serve = echo
	case "acknowledge":
		serve = acknowledge
	case "fanout":
		hub := newHub()
		go hub.run()
		serve = hub.serve
	default:
		log.Fatalf("no service %q", *service)
	}
	upgrader := websocket.Upgrader{EnableCompression: *deflate != ""}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		connection.SetReadLimit(messageBytesMax)
		serve(connection)
	})))
}

func echo(connection *websocket.Conn) {
	for {
		kind, payload, err := connection.ReadMessage()
		if err != nil {
			return
		}
		if connection.WriteMessage(kind, payload) != nil {
			return
		}
	}
}

func acknowledge(connection *websocket.Conn) {
	for {
		_, payload, err := connection.ReadMessage()
		if err != nil {
			return
		}
		count := strconv.AppendInt(nil, int64(len(payload)), 10)
		if connection.WriteMessage(websocket.TextMessage, count) != nil {
			return
		}
	}
}
