package nixlshmreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
