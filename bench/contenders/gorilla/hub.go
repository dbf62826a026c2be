package main

import "github.com/gorilla/websocket"

// clientQueueMax is how many messages may wait for a client before it is dropped.
const clientQueueMax = 256

// A hub tells all clients what one of them says; one goroutine owns the set of clients.
type hub struct {
	clients    map[*client]struct{}
	broadcast  chan *websocket.PreparedMessage
	register   chan *client
	unregister chan *client
}

type client struct {
	connection *websocket.Conn
	queue      chan *websocket.PreparedMessage
}

func newHub() *hub {
	return &hub{
		clients:    make(map[*client]struct{}),
		broadcast:  make(chan *websocket.PreparedMessage),
		register:   make(chan *client),
		unregister: make(chan *client),
	}
}

func (h *hub) run() {
	for {
		select {
		case c := <-h.register:
			h.clients[c] = struct{}{}
		case c := <-h.unregister:
			h.remove(c)
		case message := <-h.broadcast:
			for c := range h.clients {
				select {
				case c.queue <- message:
				default:
					h.remove(c)
				}
			}
		}
	}
}

func (h *hub) remove(c *client) {
	if _, known := h.clients[c]; known {
		delete(h.clients, c)
		close(c.queue)
	}
}

// serve reads a connection on the goroutine of its request and writes it on one of its own.
func (h *hub) serve(connection *websocket.Conn) {
	c := &client{connection, make(chan *websocket.PreparedMessage, clientQueueMax)}
	h.register <- c
	defer func() { h.unregister <- c }()
	go c.write()
	for {
		kind, payload, err := connection.ReadMessage()
		if err != nil {
			return
		}
		message, err := websocket.NewPreparedMessage(kind, payload)
		if err != nil {
			return
		}
		h.broadcast <- message
	}
}

func (c *client) write() {
	defer c.connection.Close()
	for message := range c.queue {
		if c.connection.WritePreparedMessage(message) != nil {
			return
		}
	}
}
