module contender/gorilla

go 1.26

require (
	contender/kit-go v0.0.0
	github.com/gorilla/websocket v1.5.3
)

replace contender/kit-go => ../kit-go
