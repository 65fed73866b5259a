package datasets

import (
	"slices"
	"testing"
)

func value(t testing.TB, text string) Value {
	t.Helper()
	v, err := ParseValue(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A value keeps its text; what it equals is decided by its canonical form.
func TestValue(t *testing.T) {
	for _, c := range []struct {
		text, canonical, shown string
		size                   int
	}{
		{`"plain"`, `"plain"`, "plain", 7},
		{`"\u00e9\n"`, `"é\n"`, "é\n", 5},
		{`"é<"`, `"é<"`, "é<", 4},
		{`1.0`, `1`, "1.0", 1},
		{`9007199254740993`, `9007199254740993`, "9007199254740993", 16},
		{`{"b": 1, "a": [true, null]}`, `{"a":[true,null],"b":1}`, `{"b": 1, "a": [true, null]}`, 23},
		{`null`, `null`, "null", 4},
	} {
		v := value(t, " "+c.text+"\n")
		if v.JSON() != c.text || v.Canonical() != c.canonical || v.String() != c.shown || v.Size() != c.size {
			t.Errorf("%s: text %s, canonical %s, shown %s, size %d", c.text, v.JSON(), v.Canonical(), v.String(), v.Size())
		}
		if !v.Equal(value(t, c.canonical)) || v.Equal(Value{}) || (Value{}).Equal(v) {
			t.Errorf("%s does not equal its canonical form, or equals nothing", c.text)
		}
	}
	for _, text := range []string{"", "{", `{"a":1,}`, "NaN", "1e999", "\"\xff\"", "1 2"} {
		if v, err := ParseValue(text); err == nil {
			t.Errorf("%q was read as %s", text, v.JSON())
		}
	}
}

func TestValueAs(t *testing.T) {
	if n, ok := value(t, "5.0").AsInt(); n != 5 || !ok {
		t.Errorf("5.0 is the whole number %d, %v", n, ok)
	}
	for _, text := range []string{"5.5", "1e30", `"5"`, "null"} {
		if n, ok := value(t, text).AsInt(); ok {
			t.Errorf("%s is the whole number %d", text, n)
		}
	}
	if _, ok := (Value{}).AsText(); ok || !(Value{}).IsZero() || (Value{}).IsNull() || (Value{}).Canonical() != "" {
		t.Error("no value is a text, or null, or something")
	}
	if b, ok := value(t, "true").AsBool(); !b || !ok {
		t.Error("true is not true")
	}
}

func TestMembers(t *testing.T) {
	v := value(t, `{"b":1,"a":{"c":[1,"x"]},"b":2}`)
	var names []string
	for name := range v.Members() {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"b", "a", "b"}) {
		t.Errorf("members in the order %v", names)
	}
	if got := v.Member("b").JSON(); got != "2" {
		t.Errorf("of two members of a name %s counts, want the last", got)
	}
	var elements []string
	for e := range v.Member("a").Member("c").Elements() {
		elements = append(elements, e.JSON())
	}
	if !slices.Equal(elements, []string{"1", `"x"`}) {
		t.Errorf("elements %v", elements)
	}
	for range value(t, `"text"`).Members() {
		t.Error("a text has members")
	}
	if got := (Values{"b": Int(1), "a": Text("x"), "c": {}}).Object().JSON(); got != `{"a":"x","b":1,"c":null}` {
		t.Errorf("as an object: %s", got)
	}
}

// Decoded, a whole number is an int64, or its own text beyond that.
func TestAny(t *testing.T) {
	got := value(t, `[1,1.5,1e2,123456789012345678901234567890,"x",null,true,{"a":[]}]`).Any().([]any)
	if got[0] != int64(1) || got[1] != 1.5 || got[2] != 100.0 || got[4] != "x" || got[5] != nil || got[6] != true {
		t.Errorf("decoded as %v", got)
	}
	if v, err := ValueOf(got); err != nil || v.JSON() != `[1,1.5,100,123456789012345678901234567890,"x",null,true,{"a":[]}]` {
		t.Errorf("encoded again as %s, %v", v.JSON(), err)
	}
}

func FuzzValue(f *testing.F) {
	f.Add(`{"a":[1,"é\n",{}],"a":null}`)
	f.Add(`"\ud83d\ude00"`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseValue(text)
		if err != nil {
			return
		}
		again, err := ParseValue(v.Canonical())
		if err != nil || !again.Equal(v) || again.Canonical() != v.Canonical() {
			t.Fatalf("%q: canonical %q (%v)", text, v.Canonical(), err)
		}
		_ = v.Any()
		n := 0
		for range v.Members() {
			n++
		}
		if (n > 0) != (v.Kind() == '{' && v.Canonical() != "{}") {
			t.Fatalf("%q has %d members", text, n)
		}
	})
}
