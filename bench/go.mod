module github.com/weirhq/weir/bench

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/weirhq/weir v0.0.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/miekg/dns v1.1.73 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace github.com/weirhq/weir => ..
