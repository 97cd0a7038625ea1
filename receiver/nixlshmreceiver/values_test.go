package nixlshmreceiver

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
)

// parse is the configuration of a receiver as the Collector reads it, or why it
// refuses it.
func parse(t *testing.T, yaml string) (*Config, error) {
	t.Helper()
	read, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := read.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	cfg := createDefaultConfig()
	if err := conf.Unmarshal(cfg); err != nil {
		// The decoder says where, which is here.
		text, ours := strings.CutPrefix(err.Error(), "decoding failed due to the following error(s):\n\n'' ")
		if !ours {
			t.Errorf("the decoder says it: %v", err)
		}
		return nil, errors.New(text)
	}
	return cfg, confmap.Validate(cfg)
}

// A uid that isn't one must not become another, least of all root's.
func TestUIDsDontWrapAround(t *testing.T) {
	for _, id := range []string{
		"4294967296", "4294967295", "-1", "-4294967296", "1.5", "8589934592", "18446744073709551616", "-9223372036854775808", "1e+30",
		`"root"`, `"0"`, "true", "null",
	} {
		want := "allowed_uids: " + id + " is not a uid: it must be from 0 to 4294967294"
		for _, yaml := range []string{"allowed_uids: [" + id + "]", "allowed_uids: [1000, " + id + "]"} {
			cfg, err := parse(t, yaml)
			if id == "18446744073709551616" { // as a decoder of YAML has it
				want = strings.Replace(want, id, "1.8446744073709552e+19", 1)
			}
			if err == nil || err.Error() != want {
				t.Errorf("%s: error is %v, want %s; config is %v", yaml, err, want, cfg)
			}
		}
	}
	cfg, err := parse(t, "allowed_uids: [0, 1000, 4294967294]")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint32{0, 1000, 4294967294}, cfg.AllowedUIDs); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// Also a configuration that nobody wrote has to hold uids.
	cfg.AllowedUIDs = []uint32{4294967295}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "allowed_uids: 4294967295 is not a uid") {
		t.Errorf("error is %v", err)
	}
}

// A list that got lost must not let everybody in.
func TestNoUIDsArentAll(t *testing.T) {
	for _, yaml := range []string{"allowed_uids: []", "allowed_uids:"} {
		if _, err := parse(t, yaml); err == nil || !strings.HasPrefix(err.Error(), "allowed_uids: an empty list allows nobody: ") {
			t.Errorf("%s: error is %v", yaml, err)
		}
	}
	cfg := createDefaultConfig()
	cfg.AllowedUIDs = []uint32{}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "allows nobody") {
		t.Errorf("error is %v", err)
	}
}
