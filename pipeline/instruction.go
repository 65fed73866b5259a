package pipeline

import "strings"

// isSpace reports white space as the format defines it: it is part of what is
// hashed, so every language must trim alike.
func isSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// blank reports whether there is nothing but white space in s.
func blank(s string) bool { return trim(s) == "" }

// ownInstruction is the program's instruction: the improved one alone, or its
// name, its description and the words on its fields.
func (p *Program) ownInstruction() string {
	if p.instructions != nil {
		return trim(*p.instructions)
	}
	var parts []string
	if p.showName {
		parts = append(parts, "Function: "+p.name)
	}
	if d := trim(p.description); d != "" {
		parts = append(parts, d)
	}
	if g := guidance(p.inputs, p.outputs); g != "" {
		parts = append(parts, g)
	}
	return strings.Join(parts, "\n\n")
}

func guidance(inputs, outputs []Field) string {
	var b strings.Builder
	section := func(title string, fields []Field) {
		written := false
		for _, f := range fields {
			if f.Desc == "" {
				continue
			}
			if !written {
				b.WriteString(title + "\n")
				written = true
			}
			b.WriteString("- " + f.Name + ": " + f.Desc + "\n")
		}
		if written {
			b.WriteByte('\n')
		}
	}
	section("Parameter guidance:", inputs)
	section("Output guidance:", outputs)
	return trim(b.String())
}

// withSections is an instruction followed by sections, each after a blank line.
func withSections(instruction string, sections []string) string {
	if len(sections) == 0 {
		return instruction
	}
	parts := sections
	if instruction != "" {
		parts = append([]string{instruction}, sections...)
	}
	return strings.Join(parts, "\n\n")
}
