module contender/gws

go 1.26

require (
	contender/kit-go v0.0.0
	github.com/lxzan/gws v1.8.9
)

require (
	github.com/dolthub/maphash v0.1.0 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
)

replace contender/kit-go => ../kit-go
