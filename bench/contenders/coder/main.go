// A WebSocket server on coder/websocket.
package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"

	"contender/kit-go"

	"github.com/coder/websocket"
)

func main() {
	listener, options := kit.Start()
	serve := service(options.Service)
	accept := websocket.AcceptOptions{
		CompressionMode: compression(options.Deflate),
		// Compress all messages; 0 would mean the default of 128 or 512 bytes.
		CompressionThreshold: 1,
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, err := websocket.Accept(w, r, &accept)
		if err != nil {
			return
		}
		defer connection.CloseNow()
		connection.SetReadLimit(kit.MessageBytesMax)
		// Serving ends with the connection; its errors concern only the client.
		_ = serve(connection)
	})))
}

func compression(deflate string) websocket.CompressionMode {
	switch deflate {
	case "takeover":
		return websocket.CompressionContextTakeover
	case "no-takeover":
		return websocket.CompressionNoContextTakeover
	default:
		return websocket.CompressionDisabled
	}
}

func service(name string) func(*websocket.Conn) error {
	switch name {
	case "echo":
		return echo
	case "acknowledge":
		return acknowledge
	case "fanout":
		hub := kit.NewHub[message]()
		return func(connection *websocket.Conn) error { return fanout(hub, connection) }
	default:
		log.Fatalf("unknown service %q", name)
		return nil
	}
}

// buffers avoid an allocation for each message, as in the library's package wsjson.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func echo(connection *websocket.Conn) error {
	for {
		kind, reader, err := connection.Reader(context.Background())
		if err != nil {
			return err
		}
		if err := send(connection, kind, reader); err != nil {
			return err
		}
	}
}

func send(connection *websocket.Conn, kind websocket.MessageType, reader io.Reader) error {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(reader); err != nil {
		return err
	}
	return connection.Write(context.Background(), kind, buffer.Bytes())
}

func acknowledge(connection *websocket.Conn) error {
	for {
		_, reader, err := connection.Reader(context.Background())
		if err != nil {
			return err
		}
		count, err := io.Copy(io.Discard, reader)
		if err != nil {
			return err
		}
		text := strconv.AppendInt(nil, count, 10)
		if err := connection.Write(context.Background(), websocket.MessageText, text); err != nil {
			return err
		}
	}
}

type message struct {
	kind    websocket.MessageType
	payload []byte
}

func fanout(hub *kit.Hub[message], connection *websocket.Conn) error {
	queue := hub.Join()
	defer hub.Leave(queue)
	go func() {
		defer connection.CloseNow()
		for message := range queue {
			if connection.Write(context.Background(), message.kind, message.payload) != nil {
				return
			}
		}
	}()
	for {
		kind, payload, err := connection.Read(context.Background())
		if err != nil {
			return err
		}
		hub.Publish(message{kind, payload})
	}
}
