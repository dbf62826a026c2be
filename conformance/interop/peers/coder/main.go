// Echoes messages with coder/websocket, as a server or as a client.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

const messageBytesMax = 2 << 20

func main() {
	role, words := os.Args[1], os.Args[2:]
	url := ""
	if role == "connect" {
		url, words = words[0], words[1:]
	}
	options := map[string]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		options[name] = value
	}
	length, _ := strconv.Atoi(options["fragment"])

	if url != "" {
		dial := websocket.DialOptions{CompressionMode: compression(options), CompressionThreshold: 1}
		connection, _, err := websocket.Dial(context.Background(), url, &dial)
		if err != nil {
			log.Fatal(err)
		}
		finish(echo(connection, length))
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s\n", listener.Addr())
	accept := websocket.AcceptOptions{CompressionMode: compression(options), CompressionThreshold: 1}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := websocket.Accept(w, r, &accept)
		if err != nil {
			log.Print(err)
			return
		}
		finish(echo(connection, length))
	})))
}

// compression returns the mode; the library has one setting for the contexts of both sides.
func compression(options map[string]string) websocket.CompressionMode {
	if _, is := options["deflate"]; !is {
		return websocket.CompressionDisabled
	}
	if _, is := options["server_no_context_takeover"]; is {
		return websocket.CompressionNoContextTakeover
	}
	return websocket.CompressionContextTakeover
}

// finish ends the process unless the connection was closed cleanly.
func finish(err error) {
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		log.Fatal(err)
	}
}

func echo(connection *websocket.Conn, length int) error {
	connection.SetReadLimit(messageBytesMax)
	for {
		kind, payload, err := connection.Read(context.Background())
		if err != nil {
			return err
		}
		if length == 0 {
			err = connection.Write(context.Background(), kind, payload)
		} else {
			err = send(connection, kind, payload, length)
		}
		if err != nil {
			return err
		}
	}
}

// send writes a message in pieces, with a Ping somewhere in between.
func send(connection *websocket.Conn, kind websocket.MessageType, payload []byte, length int) error {
	writer, err := connection.Writer(context.Background(), kind)
	if err != nil {
		return err
	}
	if len(payload)%16 == 1 {
		// It waits for the Pong, which the next read receives.
		go connection.Ping(context.Background())
	}
	for len(payload) > length {
		if _, err := writer.Write(payload[:length]); err != nil {
			return err
		}
		payload = payload[length:]
	}
	if _, err := writer.Write(payload); err != nil {
		return err
	}
	return writer.Close()
}
