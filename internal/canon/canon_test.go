package canon

import (
	"math"
	"strconv"
	"testing"
	"unicode/utf8"
)

func TestAppend(t *testing.T) {
	// Each expectation is written from the format's rules, not from the code.
	for _, c := range []struct{ name, in, want string }{
		{"members sorted by code point", `{"b":1,"a":2,"é":3,"Z":4}`, `{"Z":4,"a":2,"b":1,"é":3}`},
		// In UTF-16 the astral name would come before U+FFFD; by code point it comes after.
		{"code points, not UTF-16 units", `{"😀":1,"\uffff":2}`, "{\"\uffff\":2,\"😀\":1}"},
		{"no white space", " [ 1 , { \"a\" : [ ] } ] ", `[1,{"a":[]}]`},
		{"fraction that is whole", `1.0`, `1`},
		{"negative zero", `-0`, `0`},
		{"negative zero float", `-0.0`, `0`},
		{"small exponent", `1e-07`, `1e-7`},
		{"stays plain down to 1e-6", `0.00001`, `0.00001`},
		{"plain up to 1e21", `123456789012345680000.0`, `123456789012345680000`},
		{"exponent from 1e21", `1e21`, `1e+21`},
		{"an integer keeps its digits", `12345678901234567890123`, `12345678901234567890123`},
		{"beyond 2^53", `9007199254740993`, `9007199254740993`},
		{"html is not escaped", `"<a href=\"x\">&\u2028"`, "\"<a href=\\\"x\\\">&\u2028\""},
		{"short escapes", `"\u0008\u000c\u000a\u000d\u0009\u001f\u007f\/"`, "\"\\b\\f\\n\\r\\t\\u001f\u007f/\""},
		{"last of equal names", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		{"lone surrogate", `"\ud800"`, "\"\uFFFD\""},
		{"literals", `[true,false,null]`, `[true,false,null]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Append(nil, []byte(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("Append(%s) = %s, %v; want %s", c.in, got, err, c.want)
			}
		})
	}
	for _, in := range []string{``, `{`, `{"a"}`, `[1,]`, `01`, `nul`, `1 2`, `1e400`, `NaN`, `"a`, `{"a":1,}`} {
		if got, err := Append(nil, []byte(in)); err == nil {
			t.Errorf("Append(%s) = %s; want an error", in, got)
		}
	}
}

func TestHash(t *testing.T) {
	// echo -n '{}' | sha256sum
	if got, want := Hash([]byte("{}")), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"; got != want {
		t.Errorf("Hash({}) = %s, want %s", got, want)
	}
}

func FuzzAppend(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-9,"x\u00e9"],"b":null}`, `"\ud83d\ude00"`, `-0.0`, `[[[]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := Append(nil, in)
		if err != nil {
			return
		}
		if !utf8.Valid(once) {
			t.Fatalf("canonical form of %q is not UTF-8: %q", in, once)
		}
		twice, err := Append(nil, once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("not idempotent: %q then %q (%v)", once, twice, err)
		}
	})
}

func FuzzAppendFloat(f *testing.F) {
	f.Add(1e-7)
	f.Add(123456789.5e30)
	f.Fuzz(func(t *testing.T, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		written := string(AppendFloat(nil, v))
		back, err := strconv.ParseFloat(written, 64)
		if err != nil || back != v {
			t.Fatalf("%v was written as %s, which reads back as %v (%v)", v, written, back, err)
		}
		if again, err := AppendNumber(nil, written); err != nil || string(again) != written {
			t.Fatalf("%s is not canonical: %s (%v)", written, again, err)
		}
	})
}
