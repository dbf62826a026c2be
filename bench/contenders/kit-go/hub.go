package kit

import "sync"

// queueMax is the number of messages that may wait for a client before it is dropped.
const queueMax = 256

// A Hub puts messages into the queues of all clients, each of which has a goroutine that writes its
// queue, as in the chat examples of several libraries.
type Hub[Message any] struct {
	mutex  sync.Mutex
	queues map[chan Message]struct{}
}

// NewHub returns a hub without clients.
func NewHub[Message any]() *Hub[Message] {
	return &Hub[Message]{queues: make(map[chan Message]struct{})}
}

// Join returns the queue of a new client. It is closed when the client leaves or is too slow.
func (h *Hub[Message]) Join() chan Message {
	queue := make(chan Message, queueMax)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.queues[queue] = struct{}{}
	return queue
}

// Leave ends a queue; it may be called more than once.
func (h *Hub[Message]) Leave(queue chan Message) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.drop(queue)
}

// Publish puts a message into all queues. A client whose queue is full is dropped.
func (h *Hub[Message]) Publish(message Message) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for queue := range h.queues {
		select {
		case queue <- message:
		default:
			h.drop(queue)
		}
	}
}

func (h *Hub[Message]) drop(queue chan Message) {
	if _, known := h.queues[queue]; known {
		delete(h.queues, queue)
		close(queue)
	}
}
