// A WebSocket server on gobwas/ws.
package main

import (
	"bufio"
	"io"
	"log"
	"net"
	"strconv"
	"sync"

	"contender/kit-go"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsflate"
	"github.com/gobwas/ws/wsutil"
)

const state = ws.StateServerSide

func main() {
	listener, options := kit.Start()
	if options.Deflate == "takeover" {
		log.Fatal("the library does not support context takeover")
	}
	if options.Deflate != "" && options.Service != "echo" {
		log.Fatalf("%s does not support compression here", options.Service)
	}
	serve := service(options.Service)
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			compressed, err := upgrade(conn, options.Deflate != "")
			if err != nil {
				return
			}
			// Serving ends with the connection; its errors concern only the client.
			if compressed {
				_ = echoCompressed(newConnection(conn))
			} else {
				_ = serve(newConnection(conn))
			}
		}()
	}
}

// upgrade answers the handshake and returns whether messages may be compressed.
func upgrade(conn net.Conn, deflate bool) (bool, error) {
	extension := wsflate.Extension{Parameters: wsflate.DefaultParameters}
	var upgrader ws.Upgrader
	if deflate {
		upgrader.Negotiate = extension.Negotiate
	}
	_, err := upgrader.Upgrade(conn)
	_, compressed := extension.Accepted()
	return compressed, err
}

func service(name string) func(*connection) error {
	switch name {
	case "echo":
		return echo
	case "acknowledge":
		return acknowledge
	case "fanout":
		hub := kit.NewHub[[]byte]()
		return func(c *connection) error { return fanout(hub, c) }
	default:
		log.Fatalf("unknown service %q", name)
		return nil
	}
}

// A connection reads messages; the reader has the payload of the message that next found.
type connection struct {
	net.Conn
	reader  *wsutil.Reader
	control wsutil.FrameHandlerFunc
}

func newConnection(conn net.Conn) *connection {
	control := wsutil.ControlFrameHandler(conn, state)
	return &connection{conn, &wsutil.Reader{
		// The library reads a header in two or three parts; each would be a system call.
		Source:         bufio.NewReader(conn),
		State:          state,
		CheckUTF8:      true,
		MaxMessageSize: kit.MessageBytesMax,
		OnIntermediate: control,
	}, control}
}

// next finds the next message and answers the control frames before it.
func (c *connection) next() (ws.OpCode, error) {
	for {
		header, err := c.reader.NextFrame()
		if err != nil {
			return 0, err
		}
		if !header.OpCode.IsControl() {
			return header.OpCode, nil
		}
		if err := c.control(header, c.reader); err != nil {
			return 0, err
		}
	}
}

// writers are used for one message each, so that a connection without messages has no buffer. They
// are larger than the default of 4 KiB, because each time one is full costs a system call.
var writers = sync.Pool{New: func() any { return wsutil.NewWriterBufferSize(nil, state, 0, 64<<10) }}

func echo(c *connection) error {
	for {
		opcode, err := c.next()
		if err != nil {
			return err
		}
		if err := forward(c, opcode); err != nil {
			return err
		}
	}
}

// forward writes a message while it is being read.
func forward(c *connection, opcode ws.OpCode) error {
	writer := writers.Get().(*wsutil.Writer)
	writer.Reset(c, state, opcode)
	if _, err := io.Copy(writer, c.reader); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	// A writer that has failed keeps failing, even after a Reset, and is left to the garbage
	// collector.
	writer.Reset(nil, state, opcode)
	writers.Put(writer)
	return nil
}

func acknowledge(c *connection) error {
	for {
		if _, err := c.next(); err != nil {
			return err
		}
		count, err := io.Copy(io.Discard, c.reader)
		if err != nil {
			return err
		}
		frame, err := ws.CompileFrame(ws.NewTextFrame(strconv.AppendInt(nil, count, 10)))
		if err != nil {
			return err
		}
		if _, err := c.Write(frame); err != nil {
			return err
		}
	}
}

func fanout(hub *kit.Hub[[]byte], c *connection) error {
	queue := hub.Join()
	defer hub.Leave(queue)
	go func() {
		defer c.Close()
		for frame := range queue {
			if _, err := c.Write(frame); err != nil {
				return
			}
		}
	}()
	for {
		opcode, err := c.next()
		if err != nil {
			return err
		}
		payload, err := io.ReadAll(c.reader)
		if err != nil {
			return err
		}
		frame, err := ws.CompileFrame(ws.NewFrame(opcode, true, payload))
		if err != nil {
			return err
		}
		hub.Publish(frame)
	}
}
