module example.org/you/packed

go 1.26.0

require chartroom.example/client v0.0.0

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.1 // indirect
	connectrpc.com/connect v1.21.1 // indirect
	google.golang.org/protobuf v1.36.12
)
