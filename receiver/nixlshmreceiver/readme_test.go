package nixlshmreceiver

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The README has every key of the configuration.
func TestREADMEHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range configKeys(reflect.TypeFor[Config]()) {
		if !strings.Contains(string(text), "`"+key) && !strings.Contains(string(text), "::"+key+"`") {
			t.Errorf("%s isn't in README.md", key)
		}
	}
}

// configKeys are the keys of a struct, without what mdatagen documents.
func configKeys(of reflect.Type) (keys []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		key, squash, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		if key != "" {
			keys = append(keys, key)
		}
		ours := strings.HasSuffix(field.Type.PkgPath(), "nixlshmreceiver") || squash == "squash"
		if field.Type.Kind() == reflect.Struct && ours {
			keys = append(keys, configKeys(field.Type)...)
		}
	}
	return keys
}
