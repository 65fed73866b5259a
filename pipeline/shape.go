package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"evalrun/datasets"
)

// shape is a field's JSON Schema, ready to check values: the small part of the
// language that every program of the format's family checks alike. A keyword
// that is not listed here says nothing about which values fit.
type shape struct {
	types      []string
	enum       []datasets.Value
	constant   datasets.Value
	anyOf      []*shape
	items      *shape
	prefix     []*shape
	unique     bool
	properties []property
	record     bool // it has properties, so it is closed unless it says otherwise
	required   []string
	additional *shape // what members without a name of their own must fit; nil: anything
	closed     bool   // there may be none of those
	ref        *shape

	minItems, maxItems, minLength, maxLength int    // -1: no bound
	minimum, maximum, above, below           string // number literals; "" for no bound

	media string // the kind of media, when it is one

	only string // the one keyword there is, when there is one
}

type property struct {
	name  string
	shape *shape
}

// shapeParser reads a shape and the definitions it refers to.
type shapeParser struct {
	defs map[string]*shape
}

// parseShape reads a shape. Its error says where in the shape it lies.
func parseShape(v datasets.Value) (*shape, error) {
	if v.Kind() != '{' {
		return nil, fmt.Errorf("a shape is an object, such as {type: string}")
	}
	p := &shapeParser{defs: map[string]*shape{}}
	if defs := v.Member("$defs"); !defs.IsZero() {
		if defs.Kind() != '{' {
			return nil, fmt.Errorf("$defs: must be an object of shapes")
		}
		for name := range defs.Members() {
			p.defs[name] = &shape{}
		}
		for name, def := range defs.Members() {
			if err := p.parse(def, p.defs[name]); err != nil {
				return nil, fmt.Errorf("$defs.%s: %w", name, err)
			}
		}
		seen := map[*shape]walk{}
		for name := range defs.Members() {
			if p.defs[name].endless(seen) {
				return nil, fmt.Errorf("$defs.%s: refers to itself without end", name)
			}
		}
	}
	s := &shape{}
	if err := p.parse(v, s); err != nil {
		return nil, err
	}
	return s, nil
}

// walk is how far the search for endless references has come with a shape.
type walk int

const (
	walking walk = 1 + iota // its references are being followed
	walked                  // they all end
)

// endless reports whether following references and choices alone leads back to
// where they began, so that checking a value would never end. Each shape is
// looked into once, however many references lead to it.
func (s *shape) endless(seen map[*shape]walk) bool {
	switch seen[s] {
	case walking:
		return true
	case walked:
		return false
	}
	seen[s] = walking
	if s.ref != nil && s.ref.endless(seen) {
		return true
	}
	if slices.ContainsFunc(s.anyOf, func(o *shape) bool { return o.endless(seen) }) {
		return true
	}
	seen[s] = walked
	return false
}

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

const refPrefix = "#/$defs/"

// parse fills s, which references may already point to.
func (p *shapeParser) parse(v datasets.Value, s *shape) error {
	if v.Kind() != '{' {
		return fmt.Errorf("a shape is an object, found %s", describe(v))
	}
	s.minItems, s.maxItems, s.minLength, s.maxLength = -1, -1, -1, -1
	n := 0
	for key, w := range v.Members() {
		n++
		s.only = key
		if err := p.keyword(s, key, w); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if n != 1 {
		s.only = ""
	}
	if s.record && s.additional == nil && v.Member("additionalProperties").IsZero() {
		s.closed = true
	}
	return nil
}

func (p *shapeParser) keyword(s *shape, key string, v datasets.Value) (err error) {
	switch key {
	case "type":
		s.types, err = parseTypes(v)
	case "enum":
		if s.enum = slices.Collect(v.Elements()); len(s.enum) == 0 {
			err = fmt.Errorf("must be a list of at least one value")
		}
	case "const":
		s.constant = v
	case "anyOf":
		s.anyOf, err = p.list(v)
	case "items":
		s.items, err = p.one(v)
	case "prefixItems":
		s.prefix, err = p.list(v)
	case "minItems":
		s.minItems, err = parseCount(v)
	case "maxItems":
		s.maxItems, err = parseCount(v)
	case "minLength":
		s.minLength, err = parseCount(v)
	case "maxLength":
		s.maxLength, err = parseCount(v)
	case "uniqueItems":
		s.unique, err = parseBool(v)
	case "properties":
		s.record = true
		if v.Kind() != '{' {
			return fmt.Errorf("must be an object of shapes")
		}
		for name, w := range v.Members() {
			inner, err := p.one(w)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.properties = append(s.properties, property{name, inner})
		}
	case "required":
		s.required, err = parseNames(v)
	case "additionalProperties":
		switch v.Kind() {
		case 't':
		case 'f':
			s.closed = true
		default:
			s.additional, err = p.one(v)
		}
	case "minimum":
		s.minimum, err = parseNumber(v)
	case "maximum":
		s.maximum, err = parseNumber(v)
	case "exclusiveMinimum":
		s.above, err = parseNumber(v)
	case "exclusiveMaximum":
		s.below, err = parseNumber(v)
	case "$ref":
		s.ref, err = p.reference(v)
	case "media":
		s.media, _ = v.AsText()
	}
	return err
}

func (p *shapeParser) one(v datasets.Value) (*shape, error) {
	s := &shape{}
	return s, p.parse(v, s)
}

func (p *shapeParser) list(v datasets.Value) ([]*shape, error) {
	var shapes []*shape
	for w := range v.Elements() {
		s, err := p.one(w)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", len(shapes), err)
		}
		shapes = append(shapes, s)
	}
	if shapes == nil {
		return nil, fmt.Errorf("must be a list of at least one shape")
	}
	return shapes, nil
}

func (p *shapeParser) reference(v datasets.Value) (*shape, error) {
	text, _ := v.AsText()
	name, ok := strings.CutPrefix(text, refPrefix)
	if !ok || p.defs[name] == nil {
		return nil, fmt.Errorf("%s names none of the shape's own $defs", describe(v))
	}
	return p.defs[name], nil
}

func parseTypes(v datasets.Value) ([]string, error) {
	list := []datasets.Value{v}
	if v.Kind() == '[' {
		list = slices.Collect(v.Elements())
	}
	var types []string
	for _, w := range list {
		t, _ := w.AsText()
		if !slices.Contains(typeNames, t) {
			return nil, fmt.Errorf("%s is no type; those are %s", describe(w), strings.Join(typeNames, ", "))
		}
		if slices.Contains(types, t) {
			return nil, fmt.Errorf("%s is listed twice", t)
		}
		types = append(types, t)
	}
	if types == nil {
		return nil, fmt.Errorf("must name at least one type")
	}
	return types, nil
}

func parseCount(v datasets.Value) (int, error) {
	n, ok := v.AsInt()
	if !ok || n < 0 || n > 1<<40 {
		return -1, fmt.Errorf("must be a whole number of at least 0, found %s", describe(v))
	}
	return int(n), nil
}

func parseBool(v datasets.Value) (bool, error) {
	b, ok := v.AsBool()
	if !ok {
		return false, fmt.Errorf("must be true or false, found %s", describe(v))
	}
	return b, nil
}

func parseNumber(v datasets.Value) (string, error) {
	if v.Kind() != '0' {
		return "", fmt.Errorf("must be a number, found %s", describe(v))
	}
	return v.JSON(), nil
}

func parseNames(v datasets.Value) ([]string, error) {
	if v.Kind() != '[' {
		return nil, fmt.Errorf("must be a list of names, found %s", describe(v))
	}
	var names []string
	for w := range v.Elements() {
		name, ok := w.AsText()
		if !ok || slices.Contains(names, name) {
			return nil, fmt.Errorf("must be a list of names, each once")
		}
		names = append(names, name)
	}
	return names, nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
