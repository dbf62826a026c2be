module contender/kit-go

go 1.26
