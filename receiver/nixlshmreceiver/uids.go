// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"go.opentelemetry.io/collector/confmap"
)

// maxUID is the largest user ID: the number above it means that there is none.
const maxUID = math.MaxUint32 - 1

var errNobody = errors.New("an empty list allows nobody: list the agents' user IDs, such as [1000], or remove the key to allow everyone")

// checkUIDs checks allowed_uids before it is decoded: the decoder makes 2^32 a 0, which is
// root, and a list that comes from an environment variable that isn't set allows everyone.
func checkUIDs(conf *confmap.Conf) error {
	const key = "allowed_uids"
	if !conf.IsSet(key) {
		return nil
	}
	value := conf.Get(key)
	all := reflect.ValueOf(value)
	switch {
	case value == nil || all.Kind() == reflect.Slice && all.Len() == 0:
		return fmt.Errorf("%s: %w", key, errNobody)
	case all.Kind() != reflect.Slice:
		return fmt.Errorf("%s: %s is not a list: use [1000], for example", key, spell(value))
	}
	for i := range all.Len() {
		if err := wantUID(all.Index(i).Interface()); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func wantUID(value any) error {
	if n, ok := integer(value); !ok || n < 0 || n > maxUID {
		return fmt.Errorf("%s is not a user ID: it must be from 0 to %d", spell(value), int64(maxUID))
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
