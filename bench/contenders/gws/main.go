// A WebSocket server on gws.
package main

import (
	"log"
	"strconv"
	"sync"

	"contender/kit-go"

	"github.com/lxzan/gws"
)

func main() {
	listener, options := kit.Start()
	server := gws.NewServer(handler(options.Service), &gws.ServerOption{
		CheckUtf8Enabled:    true,
		ReadMaxPayloadSize:  kit.MessageBytesMax,
		WriteMaxPayloadSize: kit.MessageBytesMax,
		PermessageDeflate: gws.PermessageDeflate{
			Enabled:               options.Deflate != "",
			ServerContextTakeover: options.Deflate == "takeover",
			ClientContextTakeover: options.Deflate == "takeover",
			// Compress all messages; 0 would mean the default of 512 bytes.
			Threshold: 1,
			// With takeover the default is 12, which may be requested only from clients that offered it.
			ClientMaxWindowBits: 15,
		},
	})
	log.Fatal(server.RunListener(listener))
}

func handler(service string) gws.Event {
	switch service {
	case "echo":
		return &echo{}
	case "acknowledge":
		return &acknowledge{}
	case "fanout":
		return &fanout{sockets: make(map[*gws.Conn]struct{})}
	default:
		log.Fatalf("unknown service %q", service)
		return nil
	}
}

// base answers Pings; gws answers Close frames itself.
type base struct{ gws.BuiltinEventHandler }

func (base) OnPing(socket *gws.Conn, payload []byte) { _ = socket.WritePong(payload) }

type echo struct{ base }

func (echo) OnMessage(socket *gws.Conn, message *gws.Message) {
	defer message.Close()
	_ = socket.WriteMessage(message.Opcode, message.Bytes())
}

type acknowledge struct{ base }

func (acknowledge) OnMessage(socket *gws.Conn, message *gws.Message) {
	defer message.Close()
	count := strconv.AppendInt(nil, int64(message.Data.Len()), 10)
	_ = socket.WriteMessage(gws.OpcodeText, count)
}

type fanout struct {
	base
	mutex   sync.Mutex
	sockets map[*gws.Conn]struct{}
}

func (f *fanout) OnOpen(socket *gws.Conn) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.sockets[socket] = struct{}{}
}

func (f *fanout) OnClose(socket *gws.Conn, _ error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.sockets, socket)
}

func (f *fanout) OnMessage(_ *gws.Conn, message *gws.Message) {
	defer message.Close()
	broadcaster := gws.NewBroadcaster(message.Opcode, message.Bytes())
	defer broadcaster.Close()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for socket := range f.sockets {
		// A socket that fails has its OnClose called.
		_ = broadcaster.Broadcast(socket)
	}
}
