package sdktests

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

// Generous because the machine may be small and busy; only a failure takes this long.
const patience = 30 * time.Second

// journal records the events of a client or a subscription, in order.
type journal chan any

// next returns the next event of a type, and skips others before it.
func next[E any](t *testing.T, events journal) E {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-events:
			if wanted, ok := event.(E); ok {
				return wanted
			}
		case <-timeout:
			t.Fatalf("timed out waiting for %T", *new(E))
		}
	}
}

// hasSeen returns whether there is an unread event of a type.
func hasSeen[E any](events journal) bool {
	for {
		select {
		case event := <-events:
			if _, ok := event.(E); ok {
				return true
			}
		default:
			return false
		}
	}
}

// bench is the environment of a test: a format, and unique names.
type bench struct {
	*testing.T
	newClient func(string, centrifuge.Config) *centrifuge.Client
}

// overEveryFormat runs a test in JSON and in Protobuf, in parallel with all others.
func overEveryFormat(t *testing.T, test func(bench)) {
	t.Parallel()
	formats := map[string]func(string, centrifuge.Config) *centrifuge.Client{
		"JSON":     centrifuge.NewJsonClient,
		"Protobuf": centrifuge.NewProtobufClient,
	}
	for name, newClient := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(bench{t, newClient})
		})
	}
}

func (b bench) channel(namespace string) string {
	return namespace + ":go/" + b.Name()
}

func (b bench) user(name string) string {
	return name + "@" + b.Name()
}

// connected returns a connected client of a user.
func (b bench) connected(name string, config centrifuge.Config) (*centrifuge.Client, journal) {
	b.Helper()
	if config.Token == "" {
		config.Token = token(b.user(name), time.Hour)
	}
	client := b.newClient("ws://"+address+"/connection/websocket", config)
	b.Cleanup(client.Close)
	events := make(journal, 1_000)
	client.OnConnecting(func(event centrifuge.ConnectingEvent) { events <- event })
	client.OnConnected(func(event centrifuge.ConnectedEvent) { events <- event })
	client.OnDisconnected(func(event centrifuge.DisconnectedEvent) { events <- event })
	must(b.T, client.Connect())
	next[centrifuge.ConnectedEvent](b.T, events)
	return client, events
}

// subscription returns a subscription that is not subscribed yet.
func (b bench) subscription(client *centrifuge.Client, channel string) (*centrifuge.Subscription, journal) {
	b.Helper()
	subscription, err := client.NewSubscription(channel, centrifuge.SubscriptionConfig{JoinLeave: true})
	must(b.T, err)
	events := make(journal, 1_000)
	subscription.OnSubscribing(func(event centrifuge.SubscribingEvent) { events <- event })
	subscription.OnSubscribed(func(event centrifuge.SubscribedEvent) { events <- event })
	subscription.OnUnsubscribed(func(event centrifuge.UnsubscribedEvent) { events <- event })
	subscription.OnPublication(func(event centrifuge.PublicationEvent) { events <- event })
	subscription.OnJoin(func(event centrifuge.JoinEvent) { events <- event })
	subscription.OnLeave(func(event centrifuge.LeaveEvent) { events <- event })
	return subscription, events
}

// subscribed returns an active subscription.
func (b bench) subscribed(client *centrifuge.Client, channel string) (*centrifuge.Subscription, journal) {
	b.Helper()
	subscription, events := b.subscription(client, channel)
	must(b.T, subscription.Subscribe())
	next[centrifuge.SubscribedEvent](b.T, events)
	return subscription, events
}

// wantPayloads fails unless the next publications have these payloads.
func (b bench) wantPayloads(events journal, payloads ...any) {
	b.Helper()
	for _, payload := range payloads {
		b.wantPayload(next[centrifuge.PublicationEvent](b.T, events).Data, payload)
	}
}

func (b bench) wantPayload(data []byte, payload any) {
	b.Helper()
	var found any
	must(b.T, json.Unmarshal(data, &found))
	if !reflect.DeepEqual(found, payload) {
		b.Fatalf("payload is %v, want %v", found, payload)
	}
}

func (b bench) want(found, wanted any) {
	b.Helper()
	if !reflect.DeepEqual(found, wanted) {
		b.Fatalf("found %v, want %v", found, wanted)
	}
}

func (b bench) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	return ctx
}
