module contender/gobwas

go 1.26

require (
	contender/kit-go v0.0.0
	github.com/gobwas/ws v1.5.0
)

require github.com/gobwas/httphead v0.1.0 // indirect

replace contender/kit-go => ../kit-go
