package sdktests

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pusher/pusher-http-go/v5"
)

// app is an app of Pusher: a server that knows it, its backend library, and the webhooks that the
// server sends.
type app struct {
	*testing.T
	address string
	backend *pusher.Client
	told    chan pusher.WebhookEvent
}

const (
	appID     = "7"
	appKey    = "app-key"
	appSecret = "the secret of the app"
)

// startApp starts a server, which ends with the test.
func startApp(t *testing.T) app {
	t.Helper()
	backend := &pusher.Client{
		AppID:                     appID,
		Key:                       appKey,
		Secret:                    appSecret,
		EncryptionMasterKeyBase64: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	}
	told := make(chan pusher.WebhookEvent, 1_000)
	receiver := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		webhook, err := backend.Webhook(request.Header, body)
		if err != nil {
			t.Errorf("webhook: %v %s", err, body)
			return
		}
		forged := strings.Replace(string(body), `"events"`, `"event5"`, 1)
		if _, err := backend.Webhook(request.Header, []byte(forged)); err == nil {
			t.Error("a forged webhook is valid")
		}
		for _, event := range webhook.Events {
			told <- event
		}
	}))
	t.Cleanup(receiver.Close)
	webhook := fmt.Sprintf(`
[[webhook]]
name = "app"
url = %q
format = "pusher"
batch_delay_ms = 10
events = ["occupied", "vacated", "member_added", "member_removed", "published", "cache_miss", "subscription_count"]
# The library decrypts every event of an encrypted channel, and fails if the event has no data.
channels = ["presence-*", "private-cache-*"]
`, receiver.URL)
	started, stop := startServer(webhook,
		"LINERATE_CHANNEL_ALLOW_ANONYMOUS=true",
		"LINERATE_CHANNEL_ALLOW_SUBSCRIBE=true",
		"LINERATE_PROTOCOLS_PUSHER=true",
		"LINERATE_PUSHER_APP_ID="+appID,
		"LINERATE_PUSHER_CLIENT_EVENTS=true",
		"LINERATE_PUSHER_KEY="+appKey,
		"LINERATE_PUSHER_SECRET="+appSecret,
		"LINERATE_PUSHER_SUBSCRIPTION_COUNTS=true",
	)
	t.Cleanup(stop)
	backend.Host = started
	return app{t, started, backend, told}
}

// event is a message of Pusher's protocol. Data of the server is JSON in a string, except for
// errors.
type event struct {
	Event   string `json:"event"`
	Channel string `json:"channel,omitempty"`
	Data    any    `json:"data"`
	UserID  string `json:"user_id,omitempty"`
}

// socket is a client. Pusher has no client library for Go, so it speaks the protocol itself.
type socket struct {
	app
	connection *websocket.Conn
	id         string
}

func (a app) connect() socket {
	a.Helper()
	at := fmt.Sprintf("ws://%s/app/%s?protocol=7&client=go&version=1", a.address, appKey)
	connection, _, err := websocket.DefaultDialer.Dial(at, nil)
	must(a.T, err)
	a.Cleanup(func() { _ = connection.Close() })
	client := socket{a, connection, ""}
	var established struct {
		SocketID string `json:"socket_id"`
	}
	client.read("pusher:connection_established", "", &established)
	client.id = established.SocketID
	return client
}

func (s socket) send(name, channel string, data any) {
	s.Helper()
	must(s.T, s.connection.WriteJSON(event{Event: name, Channel: channel, Data: data}))
}

// next returns the next message that is not about the number of subscriptions, and answers pings.
func (s socket) next() event {
	s.Helper()
	for {
		must(s.T, s.connection.SetReadDeadline(time.Now().Add(patience)))
		var message event
		must(s.T, s.connection.ReadJSON(&message))
		switch message.Event {
		case "pusher:ping":
			s.send("pusher:pong", "", map[string]any{})
		case "pusher_internal:subscription_count":
		default:
			return message
		}
	}
}

// read returns the next message, which must be this event, and decodes its data.
func (s socket) read(name, channel string, data any) event {
	s.Helper()
	message := s.next()
	text, isText := message.Data.(string)
	if message.Event != name || message.Channel != channel || !isText {
		s.Fatalf("got %+v instead of %s in %q", message, name, channel)
	}
	must(s.T, json.Unmarshal([]byte(text), data))
	return message
}

// subscribe sends what the backend has signed, and returns the data of the answer.
func (s socket) subscribe(channel string, signed []byte) map[string]any {
	s.Helper()
	data := map[string]any{"channel": channel}
	if signed != nil {
		must(s.T, json.Unmarshal(signed, &data))
	}
	// For the client alone, which decrypts with it.
	delete(data, "shared_secret")
	s.send("pusher:subscribe", "", data)
	var succeeded map[string]any
	s.read("pusher_internal:subscription_succeeded", channel, &succeeded)
	return succeeded
}

// asks returns the body of the request with which a client asks the backend for a signature.
func (s socket) asks(channel string) []byte {
	return []byte(url.Values{"socket_id": {s.id}, "channel_name": {channel}}.Encode())
}

func (s socket) subscribePrivate(channel string) {
	s.Helper()
	signed, err := s.backend.AuthorizePrivateChannel(s.asks(channel))
	must(s.T, err)
	s.subscribe(channel, signed)
}

func (s socket) join(channel, user string) map[string]any {
	s.Helper()
	member := pusher.MemberData{UserID: user, UserInfo: map[string]string{"name": user}}
	signed, err := s.backend.AuthorizePresenceChannel(s.asks(channel), member)
	must(s.T, err)
	return s.subscribe(channel, signed)["presence"].(map[string]any)
}

// wantTold waits for a webhook.
func (a app) wantTold(wanted pusher.WebhookEvent) {
	a.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-a.told:
			if event == wanted {
				return
			}
		case <-timeout:
			a.Fatalf("timed out waiting for the webhook %+v", wanted)
		}
	}
}

func TestPusherEventsReachChannels(t *testing.T) {
	a := startApp(t)
	client := a.connect()
	client.subscribe("news", nil)
	client.subscribePrivate("private-news")
	must(t, a.backend.Trigger("news", "created", map[string]any{"id": 1, "text": "ü \"\n"}))
	var data struct {
		ID   int
		Text string
	}
	client.read("created", "news", &data)
	if data.ID != 1 || data.Text != "ü \"\n" {
		t.Fatalf("%+v", data)
	}
	must(t, a.backend.TriggerMulti([]string{"news", "private-news"}, "updated", 2))
	var number int
	for _, channel := range []string{"news", "private-news"} {
		client.read("updated", channel, &number)
	}
	must(t, a.backend.TriggerExclusive("news", "updated", 3, client.id))
	info := "subscription_count"
	counts, err := a.backend.TriggerWithParams("news", "updated", 4, pusher.TriggerParams{Info: &info})
	must(t, err)
	if count := counts.Channels["news"].SubscriptionCount; count == nil || *count != 1 {
		t.Fatalf("%+v", counts)
	}
	client.read("updated", "news", &number)
	if number != 4 {
		t.Fatalf("the client that caused event %d received it", number)
	}
}

func TestPusherBatches(t *testing.T) {
	a := startApp(t)
	client := a.connect()
	client.subscribe("news", nil)
	info := "subscription_count"
	counts, err := a.backend.TriggerBatch([]pusher.Event{
		{Channel: "news", Name: "created", Data: 1, Info: &info},
		{Channel: "news", Name: "created", Data: 2, SocketID: &client.id},
		{Channel: "olds", Name: "created", Data: 3, Info: &info},
		{Channel: "news", Name: "created", Data: 4},
	})
	must(t, err)
	for index, wanted := range []int{1, -1, 0, -1} {
		count := counts.Batch[index].SubscriptionCount
		if (count == nil) != (wanted < 0) || count != nil && *count != wanted {
			t.Fatalf("event %d of %+v", index, counts)
		}
	}
	for _, wanted := range []int{1, 4} {
		var number int
		client.read("created", "news", &number)
		if number != wanted {
			t.Fatalf("got %d instead of %d", number, wanted)
		}
	}
}

func TestPusherEncryptedChannels(t *testing.T) {
	a := startApp(t)
	client := a.connect()
	client.subscribePrivate("private-encrypted-news")
	must(t, a.backend.Trigger("private-encrypted-news", "created", "hidden"))
	var sealed struct{ Nonce, Ciphertext string }
	client.read("created", "private-encrypted-news", &sealed)
	if sealed.Nonce == "" || sealed.Ciphertext == "" || strings.Contains(sealed.Ciphertext, "hidden") {
		t.Fatalf("%+v", sealed)
	}
}

func TestPusherPresence(t *testing.T) {
	a := startApp(t)
	ann, bob := a.connect(), a.connect()
	ann.join("presence-room", "ann")
	if presence := bob.join("presence-room", "bob"); presence["count"] != 2.0 {
		t.Fatalf("%+v", presence)
	}
	var member struct {
		UserID   string            `json:"user_id"`
		UserInfo map[string]string `json:"user_info"`
	}
	ann.read("pusher_internal:member_added", "presence-room", &member)
	if member.UserID != "bob" || member.UserInfo["name"] != "bob" {
		t.Fatalf("%+v", member)
	}
	users, err := a.backend.GetChannelUsers("presence-room")
	must(t, err)
	if fmt.Sprint(users.List) != "[{ann} {bob}]" {
		t.Fatalf("%+v", users)
	}
	info, prefix := "user_count", "presence-"
	channels, err := a.backend.Channels(pusher.ChannelsParams{FilterByPrefix: &prefix, Info: &info})
	must(t, err)
	if len(channels.Channels) != 1 || channels.Channels["presence-room"].UserCount != 2 {
		t.Fatalf("%+v", channels)
	}
	both := "user_count,subscription_count"
	channel, err := a.backend.Channel("presence-room", pusher.ChannelParams{Info: &both})
	must(t, err)
	wanted := pusher.Channel{Name: "presence-room", Occupied: true, UserCount: 2, SubscriptionCount: 2}
	if *channel != wanted {
		t.Fatalf("%+v", channel)
	}
	bob.send("client-typing", "presence-room", map[string]any{"at": 1})
	var typing map[string]any
	if message := ann.read("client-typing", "presence-room", &typing); message.UserID != "bob" {
		t.Fatalf("%+v", message)
	}
}

func TestPusherUsers(t *testing.T) {
	a := startApp(t)
	client := a.connect()
	signed, err := a.backend.AuthenticateUser(client.asks(""), map[string]any{"id": "ann"})
	must(t, err)
	var data map[string]any
	must(t, json.Unmarshal(signed, &data))
	client.send("pusher:signin", "", data)
	var succeeded struct {
		UserData string `json:"user_data"`
	}
	client.read("pusher:signin_success", "", &succeeded)
	if succeeded.UserData != `{"id":"ann"}` {
		t.Fatalf("%+v", succeeded)
	}
	client.subscribe("#server-to-user-ann", nil)
	must(t, a.backend.SendToUser("ann", "created", 7))
	var number int
	client.read("created", "#server-to-user-ann", &number)
	if number != 7 {
		t.Fatalf("got %d", number)
	}
}

func TestPusherWebhooks(t *testing.T) {
	a := startApp(t)
	client := a.connect()
	client.join("presence-room", "ann")
	a.wantTold(pusher.WebhookEvent{Name: "channel_occupied", Channel: "presence-room"})
	a.wantTold(pusher.WebhookEvent{Name: "member_added", Channel: "presence-room", UserID: "ann"})
	client.send("client-typing", "presence-room", map[string]any{"at": 1})
	a.wantTold(pusher.WebhookEvent{
		Name: "client_event", Channel: "presence-room", Event: "client-typing", Data: `{"at":1}`,
		SocketID: client.id, UserID: "ann",
	})
	client.subscribePrivate("private-cache-news")
	a.wantTold(pusher.WebhookEvent{Name: "cache_miss", Channel: "private-cache-news"})
	// The library has no field for the number.
	a.wantTold(pusher.WebhookEvent{Name: "subscription_count", Channel: "private-cache-news"})
	must(t, client.connection.Close())
	a.wantTold(pusher.WebhookEvent{Name: "member_removed", Channel: "presence-room", UserID: "ann"})
}

func TestPusherErrors(t *testing.T) {
	a := startApp(t)
	other := *a.backend
	other.Secret = "another secret of the app"
	err := other.Trigger("news", "created", 1)
	if err == nil || !strings.Contains(err.Error(), "401") {
		t.Fatalf("%v", err)
	}
	_, err = a.backend.GetChannelUsers("news")
	if err == nil || !strings.Contains(err.Error(), "400") {
		t.Fatalf("%v", err)
	}
	client := a.connect()
	signed, err := other.AuthorizePrivateChannel(client.asks("private-news"))
	must(t, err)
	data := map[string]any{"channel": "private-news"}
	must(t, json.Unmarshal(signed, &data))
	client.send("pusher:subscribe", "", data)
	message := client.next()
	refused, _ := message.Data.(map[string]any)
	if message.Event != "pusher:subscription_error" || refused["status"] != 401.0 {
		t.Fatalf("%+v", message)
	}
}
