package otlpmetric

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The names of the OTLP exporter's variables begin so: those for all signals,
// and those for metrics, which come first.
const (
	general = "OTEL_EXPORTER_OTLP_"
	special = "OTEL_EXPORTER_OTLP_METRICS_"
)

// lookup is the variable of a setting that counts, and its value; "" where
// neither is set. An empty value is as good as none.
func lookup(setting string) (name, value string) {
	for _, prefix := range []string{special, general} {
		if v := get(prefix + setting); v != "" {
			return prefix + setting, v
		}
	}
	return "", ""
}

func get(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// nowhere says whether the environment leaves it open where to ship, and how.
func nowhere() bool {
	for _, setting := range []string{"ENDPOINT", "INSECURE", "CERTIFICATE", "CLIENT_CERTIFICATE"} {
		if name, _ := lookup(setting); name != "" {
			return false
		}
	}
	return true
}

// checkEnv finds what the SDK would pass over. Each error begins with the name
// of a variable.
func checkEnv() error {
	errs := []error{checkEndpoint(), checkCertificates(), checkHeaders(), checkResource()}
	for _, c := range choices {
		errs = append(errs, c.check())
	}
	timeout, _ := lookup("TIMEOUT")
	for _, name := range []string{timeout, "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT"} {
		errs = append(errs, checkMillis(name))
	}
	return errors.Join(errs...)
}

// choice is a setting that has one of a few values.
type choice struct {
	setting string
	values  []string
}

var choices = []choice{
	{"PROTOCOL", []string{"grpc"}},
	{"COMPRESSION", []string{"gzip", "none"}},
	{"INSECURE", []string{"true", "false"}},
	// These two exist for metrics alone.
	{"TEMPORALITY_PREFERENCE", []string{"cumulative", "delta", "lowmemory"}},
	{"DEFAULT_HISTOGRAM_AGGREGATION", []string{"explicit_bucket_histogram", "base2_exponential_bucket_histogram"}},
}

func (c choice) check() error {
	name, value := lookup(c.setting)
	if name == "" || slices.Contains(c.values, strings.ToLower(value)) {
		return nil
	}
	return fmt.Errorf("%s=%s: here it can be %s only", name, value, strings.Join(c.values, " or "))
}

func checkMillis(name string) error {
	value := get(name)
	if value == "" {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n <= 0 {
		return fmt.Errorf("%s=%s: whole milliseconds are needed, more than 0", name, value)
	}
	return nil
}

// checkEndpoint wants what gRPC can dial: a host and a port.
func checkEndpoint() error {
	name, value := lookup("ENDPOINT")
	if name == "" {
		return nil
	}
	u, err := url.Parse(value)
	var cause *url.Error
	if errors.As(err, &cause) {
		err = cause.Err // the value is in the message once
	}
	scheme := ""
	if err == nil {
		scheme = strings.ToLower(u.Scheme)
	}
	switch {
	case !strings.Contains(value, "://"): // host:port parses as a scheme, or not at all
		err = fmt.Errorf("it has no scheme: write http://%s, or https://%s for TLS", value, value)
	case err != nil:
	case scheme == "unix":
		return nil
	case scheme != "http" && scheme != "https":
		err = fmt.Errorf("the scheme is %s: write http://, or https:// for TLS", u.Scheme)
	case u.Hostname() == "":
		err = errors.New("it has no host")
	case u.Path != "" && u.Path != "/":
		err = fmt.Errorf("it has a path, %s, which is for OTLP over HTTP: OTLP over gRPC has none", u.Path)
	case u.Port() == "" && scheme == "http":
		err = fmt.Errorf("it has no port: write http://%s:4317", u.Host)
	case u.Port() != "" && !isPort(u.Port()):
		err = fmt.Errorf("%s is no port", u.Port())
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", name, value, err)
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// checkHeaders doesn't repeat a header: its value may be a secret.
func checkHeaders() error {
	name, value := lookup("HEADERS")
	if name == "" {
		return nil
	}
	for i, pair := range strings.Split(value, ",") {
		key, v, ok := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(v); !ok || err != nil || strings.TrimSpace(key) == "" {
			return fmt.Errorf("%s: header %d is not of the form key=value, with %% and , in the value as %%25 and %%2C", name, i+1)
		}
	}
	return nil
}

func checkResource() error {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	value := get(name)
	if value == "" {
		return nil
	}
	for pair := range strings.SplitSeq(value, ",") {
		key, v, ok := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(v); !ok || err != nil || strings.TrimSpace(key) == "" {
			return fmt.Errorf("%s: %q is not of the form key=value, with %% and , in the value as %%25 and %%2C", name, pair)
		}
	}
	return nil
}
