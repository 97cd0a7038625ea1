// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxUID is the largest user ID: the number above it means that there is none.
const maxUID = math.MaxUint32 - 1

// values are the keys whose values are checked before they are decoded.
var values = []struct {
	key   string
	check func(value any) error
}{
	{"directories", wantList(wantText, "/run/nixl")},
	{"discovery::processes::interval", wantDuration("s", "5s")},
	{"discovery::processes::otel_resource_attributes", wantList(wantText, `"service.*"`)},
	{"discovery::kubelet::path", wantText},
	{"discovery::kubelet::volumes", wantList(wantText, `"*"`)},
	{"identify_by", wantList(wantText, "pod, agent")},
	{"resource", wantMap(wantText, "k8s.cluster.name: east")},
	{"include", wantList(wantText, `"*"`)},
	{"exclude", wantList(wantText, `"*.log"`)},
	{"run_interval", wantDuration("ms", "100ms")},
	{"collection_interval", wantDuration("s", "10s")},
	{"initial_delay", wantDuration("s", "1s")},
	{"timeout", wantDuration("s", "5s")},
	{"stale_after", wantDuration("s", "5m")},
	{"mode", wantMode},
	{"allowed_uids", wantUIDs},
	{"storage", wantText},
	{"max_rings", wantWhole(engine.DefaultMaxRings)},
	{"histograms::duration::kind", wantKind},
	{"histograms::duration::bounds", wantList(wantNumber, "0.001, 0.01")},
	{"histograms::size::kind", wantKind},
	{"histograms::size::bounds", wantList(wantNumber, "1024, 4096")},
	{"histograms::throughput::kind", wantKind},
	{"histograms::throughput::bounds", wantList(wantNumber, "1e8, 1e9")},
	{"logs::slow_transfer", wantDuration("ms", "1s")},
	{"logs::min_throughput", wantNumber},
	{"logs::errors", wantBool},
	{"logs::rate", wantNumber},
}

// checkValues checks the types of values. The decoder's errors name neither the value
// nor what to use instead, and the decoder converts numbers without an error: a user
// ID of 2^32 becomes 0, which is root, and 100 without a unit becomes 100 ns.
func checkValues(conf *confmap.Conf) error {
	var errs []error
	for _, v := range values {
		if !conf.IsSet(v.key) {
			continue
		}
		if err := v.check(conf.Get(v.key)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", v.key, err))
		}
	}
	return errors.Join(errs...)
}

// wantList checks each value of a list. A single string needs no brackets.
func wantList(check func(any) error, example string) func(any) error {
	return func(value any) error {
		if value == nil {
			return nil // the default applies
		}
		if _, ok := value.(string); ok && check(value) == nil {
			return nil
		}
		all := reflect.ValueOf(value)
		if all.Kind() != reflect.Slice {
			return fmt.Errorf("%s is not a list: use [%s], for example", spell(value), example)
		}
		for i := range all.Len() {
			if err := check(all.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
}

// wantMap checks each value of a map.
func wantMap(check func(any) error, example string) func(any) error {
	return func(value any) error {
		all := reflect.ValueOf(value)
		if value == nil {
			return nil
		}
		if all.Kind() != reflect.Map {
			return fmt.Errorf("%s is not a map: use {%s}, for example", spell(value), example)
		}
		for it := all.MapRange(); it.Next(); {
			if err := check(it.Value().Interface()); err != nil {
				return fmt.Errorf("%v: %w", it.Key(), err)
			}
		}
		return nil
	}
}

// wantDuration checks a duration. The error suggests a unit for a number without one.
func wantDuration(unit, example string) func(any) error {
	return func(value any) error {
		if _, ok := value.(time.Duration); ok {
			return nil // the configuration comes from Go, not from YAML
		}
		s, isText := value.(string)
		if _, err := time.ParseDuration(s); isText && err == nil {
			return nil
		}
		n, err := strconv.ParseFloat(fmt.Sprint(value), 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return fmt.Errorf("%s is not a duration: use %s, for example", spell(value), example)
		case n == 0:
			return nil
		case n != math.Trunc(n) || n < 0 || n >= math.MaxInt64:
		case n < float64(time.Millisecond):
			example = strconv.FormatFloat(n, 'f', -1, 64) + unit
		default: // most likely nanoseconds
			example = time.Duration(n).String()
		}
		return fmt.Errorf("%s has no unit: use %s, for example", spell(value), example)
	}
}

func wantMode(value any) error {
	if s, ok := value.(string); ok {
		return new(ringbuf.Mode).UnmarshalText([]byte(s))
	}
	return fmt.Errorf("%s is not a mode: use consume or observe", spell(value))
}

func wantKind(value any) error {
	if _, ok := value.(string); !ok {
		return fmt.Errorf("%s is not a kind: use explicit, exponential or none", spell(value))
	}
	return nil
}

// wantText accepts numbers, too, because the value of an environment variable can
// look like one. The decoder reads it as a string.
func wantText(value any) error {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Slice, reflect.Map:
		return fmt.Errorf("%s is not a string: use a single value, in quotes if necessary", spell(value))
	default:
		return nil
	}
}

// wantUIDs rejects an empty list instead of allowing everyone: the list may come from
// an environment variable that isn't set.
func wantUIDs(value any) error {
	if all := reflect.ValueOf(value); value == nil || all.Kind() == reflect.Slice && all.Len() == 0 {
		return errNobody
	}
	return wantList(wantUID, "1000")(value)
}

var errNobody = errors.New("an empty list allows nobody: list the agents' user IDs, such as [1000], or remove the key to allow everyone")

func wantUID(value any) error {
	if n, ok := integer(value); !ok || n < 0 || n > maxUID {
		return fmt.Errorf("%s is not a user ID: it must be from 0 to %d", spell(value), int64(maxUID))
	}
	return nil
}

func wantWhole(example int) func(any) error {
	return func(value any) error {
		if n, ok := integer(value); !ok || n != int64(int32(n)) {
			return fmt.Errorf("%s must be a 32-bit integer, such as %d", spell(value), example)
		}
		return nil
	}
}

// wantBytes checks a size, which may exceed 2 GiB.
func wantBytes(value any) error {
	if _, ok := integer(value); !ok {
		return fmt.Errorf("%s is not a number of bytes: use %d, for example, without a unit", spell(value), 1<<20)
	}
	return nil
}

func wantNumber(value any) error {
	v := reflect.ValueOf(value)
	if !v.CanInt() && !v.CanUint() && !v.CanFloat() {
		return fmt.Errorf("%s is not a number: use 0.5, for example, without a unit", spell(value))
	}
	return nil
}

func wantBool(value any) error {
	if _, ok := value.(bool); !ok {
		return fmt.Errorf("%s must be true or false", spell(value))
	}
	return nil
}

// integer returns an integer of any type that YAML decodes it to.
func integer(value any) (int64, bool) {
	const exact = 1 << 53 // float64 represents every integer up to this one
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(min(v.Uint(), math.MaxInt64)), true
	case v.CanFloat():
		f := v.Float()
		return int64(f), f == math.Trunc(f) && math.Abs(f) < exact
	default:
		return 0, false
	}
}

// spell formats a value as in the file.
func spell(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(v)
	default:
		return fmt.Sprint(v)
	}
}
