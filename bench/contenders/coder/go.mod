module contender/coder

go 1.26

require (
	contender/kit-go v0.0.0
	github.com/coder/websocket v1.8.15
)

replace contender/kit-go => ../kit-go
