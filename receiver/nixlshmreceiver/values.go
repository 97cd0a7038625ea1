package nixlshmreceiver

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"go.opentelemetry.io/collector/confmap"
)

// maxUID is the largest user id: the one above stands for none.
const maxUID = math.MaxUint32 - 1

// values are the keys whose values are looked at as they are written.
var values = []struct {
	key   string
	check func(value any) error
}{
	{"allowed_uids", wantUIDs},
}

// checkValues checks that values are of the kinds that their keys take. The
// decoder makes numbers fit: a uid of 2^32 becomes 0, root's.
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

// wantList checks each of several values. A text may stand there without brackets.
func wantList(check func(any) error, example string) func(any) error {
	return func(value any) error {
		if value == nil {
			return nil // the default holds
		}
		if _, ok := value.(string); ok && check(value) == nil {
			return nil
		}
		all := reflect.ValueOf(value)
		if all.Kind() != reflect.Slice {
			return fmt.Errorf("%s is not a list: write [%s], for example", spell(value), example)
		}
		for i := range all.Len() {
			if err := check(all.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	}
}

// wantUIDs doesn't take nothing for all: a list that got lost, in a variable that
// isn't set for example, would let everybody in.
func wantUIDs(value any) error {
	if all := reflect.ValueOf(value); value == nil || all.Kind() == reflect.Slice && all.Len() == 0 {
		return errNobody
	}
	return wantList(wantUID, "1000")(value)
}

var errNobody = errors.New("an empty list allows nobody: write the uids of the agents, such as [1000], or leave the key out to allow all")

func wantUID(value any) error {
	if n, ok := integer(value); !ok || n < 0 || n > maxUID {
		return fmt.Errorf("%s is not a uid: it must be from 0 to %d", spell(value), maxUID)
	}
	return nil
}

// integer is a whole number, however it came out of the file.
func integer(value any) (int64, bool) {
	const exact = 1 << 53 // the largest that a float64 has no other number near of
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

// spell is a value as it may stand in the file.
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
