// Echoes messages with gorilla/websocket, as a server or as a client.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

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
	_, deflate := options["deflate"]
	// The library ends a fragment whenever its buffer is full; 0 means its default size.
	length, _ := strconv.Atoi(options["fragment"])

	if url != "" {
		dialer := websocket.Dialer{EnableCompression: deflate, WriteBufferSize: length}
		connection, _, err := dialer.Dial(url, nil)
		if err != nil {
			log.Fatal(err)
		}
		finish(echo(connection))
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s\n", listener.Addr())
	upgrader := websocket.Upgrader{EnableCompression: deflate, WriteBufferSize: length}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			log.Print(err)
			return
		}
		defer connection.Close()
		finish(echo(connection))
	})))
}

// finish ends the process unless the connection was closed cleanly.
func finish(err error) {
	if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		log.Fatal(err)
	}
}

func echo(connection *websocket.Conn) error {
	for {
		kind, payload, err := connection.ReadMessage()
		if err != nil {
			return err
		}
		if err := send(connection, kind, payload); err != nil {
			return err
		}
	}
}

// send writes a message in two halves, with a Ping in between if the library sends it there.
func send(connection *websocket.Conn, kind int, payload []byte) error {
	writer, err := connection.NextWriter(kind)
	if err != nil {
		return err
	}
	half := len(payload) / 2
	if _, err := writer.Write(payload[:half]); err != nil {
		return err
	}
	if half%16 == 1 {
		if err := connection.WriteControl(websocket.PingMessage, payload[:1], time.Time{}); err != nil {
			return err
		}
	}
	if _, err := writer.Write(payload[half:]); err != nil {
		return err
	}
	return writer.Close()
}
