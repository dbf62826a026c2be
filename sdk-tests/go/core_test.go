// Package sdktests runs the published package centrifuge-go against `linerate serve`, in JSON and
// Protobuf: the core of the protocol.
package sdktests

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

func TestWhatIsPublishedArrivesInOrder(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		client, _ := b.connected("ann", centrifuge.Config{})
		_, events := b.subscribed(client, b.channel("open"))
		long := strings.Repeat("x", 100_000)
		publish(b.T, b.channel("open"), map[string]any{"a": 1.5}, "ü\n", []any{nil, true}, long)
		b.wantPayloads(events, map[string]any{"a": 1.5}, "ü\n", []any{nil, true}, long)
	})
}

func TestAClientPublishesAndIsNamed(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		ann, _ := b.connected("ann", centrifuge.Config{})
		_, events := b.subscribed(ann, b.channel("open"))
		bob, _ := b.connected("bob", centrifuge.Config{})
		_, err := bob.Publish(b.soon(), b.channel("open"), []byte(`{"price":190}`))
		must(b.T, err)
		publication := next[centrifuge.PublicationEvent](b.T, events)
		b.wantPayload(publication.Data, map[string]any{"price": 190.0})
		b.want(publication.Info.User, b.user("bob"))
		b.want(publication.Offset, uint64(1))
	})
}

func TestPresenceAndWhoComesAndGoes(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		ann, _ := b.connected("ann", centrifuge.Config{})
		subscription, events := b.subscribed(ann, b.channel("open"))
		bob, _ := b.connected("bob", centrifuge.Config{})
		b.subscribed(bob, b.channel("open"))
		for next[centrifuge.JoinEvent](b.T, events).User != b.user("bob") {
		}
		presence, err := subscription.Presence(b.soon())
		must(b.T, err)
		var users []string
		for _, info := range presence.Clients {
			users = append(users, info.User)
		}
		slices.Sort(users)
		b.want(users, []string{b.user("ann"), b.user("bob")})
		stats, err := subscription.PresenceStats(b.soon())
		must(b.T, err)
		b.want(stats.PresenceStats, centrifuge.PresenceStats{NumClients: 2, NumUsers: 2})
		must(b.T, bob.Disconnect())
		b.want(next[centrifuge.LeaveEvent](b.T, events).User, b.user("bob"))
	})
}

func TestHistory(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		client, _ := b.connected("ann", centrifuge.Config{})
		subscription, _ := b.subscribed(client, b.channel("open"))
		publish(b.T, b.channel("open"), 1, 2, 3)
		newest := centrifuge.WithHistoryReverse(true)
		history, err := subscription.History(b.soon(), centrifuge.WithHistoryLimit(2), newest)
		must(b.T, err)
		b.want(history.Offset, uint64(3))
		b.want(len(history.Publications), 2)
		b.wantPayload(history.Publications[0].Data, 3.0)
		b.wantPayload(history.Publications[1].Data, 2.0)
	})
}

func TestWhatWasMissedIsRecovered(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		client, events := b.connected("ann", centrifuge.Config{MinReconnectDelay: time.Second})
		_, publications := b.subscribed(client, b.channel("open"))
		publish(b.T, b.channel("open"), 1)
		b.wantPayloads(publications, 1.0)
		why := map[string]any{"code": 4000, "reason": "come back"}
		api(b.T, "disconnect", map[string]any{"user": b.user("ann"), "disconnect": why})
		b.want(next[centrifuge.ConnectingEvent](b.T, events), centrifuge.ConnectingEvent{Code: 4000, Reason: "come back"})
		publish(b.T, b.channel("open"), 2, 3, 4)
		again := next[centrifuge.SubscribedEvent](b.T, publications)
		b.want([]bool{again.WasRecovering, again.Recovered}, []bool{true, true})
		b.wantPayloads(publications, 2.0, 3.0, 4.0)
	})
}

func TestTokensAreRefreshed(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		asked := make(chan struct{}, 10)
		lasts := 2 * time.Second
		ends := time.Now().Add(lasts + refreshGrace)
		client, events := b.connected("ann", centrifuge.Config{
			Token: token(b.user("ann"), lasts),
			GetToken: func(centrifuge.ConnectionTokenEvent) (string, error) {
				asked <- struct{}{}
				return token(b.user("ann"), time.Hour), nil
			},
		})
		select {
		case <-asked:
		case <-b.soon().Done():
			b.Fatal("no newer token was requested")
		}
		// With only the first token, the server would have closed the connection by now.
		time.Sleep(time.Until(ends) + 500*time.Millisecond)
		b.subscribed(client, b.channel("open"))
		b.want(hasSeen[centrifuge.ConnectingEvent](events), false)
	})
}

func TestASubscriptionEndsAndBeginsAgain(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		client, _ := b.connected("ann", centrifuge.Config{})
		subscription, events := b.subscribed(client, b.channel("live"))
		must(b.T, subscription.Unsubscribe())
		next[centrifuge.UnsubscribedEvent](b.T, events)
		must(b.T, subscription.Subscribe())
		next[centrifuge.SubscribedEvent](b.T, events)
		publish(b.T, b.channel("live"), "again")
		b.wantPayloads(events, "again")
		api(b.T, "unsubscribe", map[string]any{"user": b.user("ann"), "channel": b.channel("live")})
		b.want(next[centrifuge.UnsubscribedEvent](b.T, events).Code, uint32(2000))
	})
}

func TestErrorsHaveTheirCodes(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		client, _ := b.connected("ann", centrifuge.Config{})
		subscription, events := b.subscription(client, b.channel("private"))
		must(b.T, subscription.Subscribe())
		b.want(next[centrifuge.UnsubscribedEvent](b.T, events).Code, uint32(103))
		_, err := client.Publish(b.soon(), b.channel("live"), []byte("1"))
		var refused *centrifuge.Error
		if !errors.As(err, &refused) || refused.Code != 103 {
			b.Fatalf("publishing without permission returned %v", err)
		}
	})
}

func TestAWrongTokenIsNotTriedAgain(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		config := centrifuge.Config{Token: token(b.user("ann"), time.Hour) + "x"}
		client := b.newClient("ws://"+address+"/connection/websocket", config)
		b.Cleanup(client.Close)
		events := make(journal, 10)
		client.OnDisconnected(func(event centrifuge.DisconnectedEvent) { events <- event })
		must(b.T, client.Connect())
		b.want(next[centrifuge.DisconnectedEvent](b.T, events).Code, uint32(3500))
	})
}

func TestAnIdleClientStaysAndADisconnectedOneGoes(t *testing.T) {
	overEveryFormat(t, func(b bench) {
		_, events := b.connected("ann", centrifuge.Config{})
		// Several pings, one per second, and their answers.
		time.Sleep(3500 * time.Millisecond)
		api(b.T, "disconnect", map[string]any{"user": b.user("ann")})
		for {
			select {
			case event := <-events:
				gone, ok := event.(centrifuge.DisconnectedEvent)
				if !ok {
					b.Fatalf("an idle client received %#v", event)
				}
				b.want(gone.Code, uint32(3503))
				return
			case <-b.soon().Done():
				b.Fatal("the client was not disconnected")
			}
		}
	})
}
