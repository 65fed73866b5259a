module example.org/outside

go 1.26.0

require evalrun v0.0.0

require (
	github.com/go-json-experiment/json v1.27.2 // indirect
	go.starlark.net v0.0.0-20260908191801-89a6a09411d5 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace evalrun => ../..
