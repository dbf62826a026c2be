// A WebSocket server on gorilla/websocket.
package main

import (
	"io"
	"log"
	"net/http"
	"strconv"

	"contender/kit-go"

	"github.com/gorilla/websocket"
)

func main() {
	listener, options := kit.Start()
	if options.Deflate == "takeover" {
		log.Fatal("the library does not support context takeover")
	}
	serve := service(options.Service)
	upgrader := websocket.Upgrader{EnableCompression: options.Deflate != ""}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		connection.SetReadLimit(kit.MessageBytesMax)
		// Serving ends with the connection; its errors concern only the client.
		_ = serve(connection)
	})))
}

func service(name string) func(*websocket.Conn) error {
	switch name {
	case "echo":
		return echo
	case "acknowledge":
		return acknowledge
	case "fanout":
		hub := kit.NewHub[*websocket.PreparedMessage]()
		return func(connection *websocket.Conn) error { return fanout(hub, connection) }
	default:
		log.Fatalf("unknown service %q", name)
		return nil
	}
}

func echo(connection *websocket.Conn) error {
	for {
		kind, payload, err := connection.ReadMessage()
		if err != nil {
			return err
		}
		if err := connection.WriteMessage(kind, payload); err != nil {
			return err
		}
	}
}

func acknowledge(connection *websocket.Conn) error {
	for {
		_, reader, err := connection.NextReader()
		if err != nil {
			return err
		}
		count, err := io.Copy(io.Discard, reader)
		if err != nil {
			return err
		}
		text := strconv.AppendInt(nil, count, 10)
		if err := connection.WriteMessage(websocket.TextMessage, text); err != nil {
			return err
		}
	}
}

func fanout(hub *kit.Hub[*websocket.PreparedMessage], connection *websocket.Conn) error {
	queue := hub.Join()
	defer hub.Leave(queue)
	go func() {
		defer connection.Close()
		for message := range queue {
			if connection.WritePreparedMessage(message) != nil {
				return
			}
		}
	}()
	for {
		kind, payload, err := connection.ReadMessage()
		if err != nil {
			return err
		}
		message, err := websocket.NewPreparedMessage(kind, payload)
		if err != nil {
			return err
		}
		hub.Publish(message)
	}
}
