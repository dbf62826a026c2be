// A node of the library on which Centrifugo is built: its WebSocket endpoint, its Redis broker, its
// filters by tags.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"

	"github.com/centrifugal/centrifuge"
)

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on")
	redis := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	flag.Parse()

	node, err := centrifuge.New(centrifuge.Config{LogLevel: centrifuge.LogLevelError})
	if err != nil {
		log.Fatal(err)
	}
	if err := useRedis(node, *redis); err != nil {
		log.Fatal(err)
	}
	node.OnConnecting(anonymous)
	node.OnConnect(func(client *centrifuge.Client) {
		client.OnSubscribe(allow)
	})
	if err := node.Run(); err != nil {
		log.Fatal(err)
	}
	http.Handle("/connection/websocket", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{}))
	log.Fatal(http.ListenAndServe(*address, nil))
}

func useRedis(node *centrifuge.Node, address string) error {
	shard, err := centrifuge.NewRedisShard(node, centrifuge.RedisShardConfig{Address: address})
	if err != nil {
		return err
	}
	broker, err := centrifuge.NewRedisBroker(node, centrifuge.RedisBrokerConfig{
		Shards: []*centrifuge.RedisShard{shard},
	})
	if err != nil {
		return err
	}
	node.SetBroker(broker)
	return nil
}

func anonymous(_ context.Context, _ centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
	return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{}}, nil
}

func allow(_ centrifuge.SubscribeEvent, answer centrifuge.SubscribeCallback) {
	options := centrifuge.SubscribeOptions{AllowTagsFilter: true}
	answer(centrifuge.SubscribeReply{Options: options}, nil)
}
