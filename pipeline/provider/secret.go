package provider

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Secret is a key: whatever prints it prints that there is one.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// hidden stands where a secret was.
const hidden = "[secret]"

// leastSecret is the length in bytes from which a secret is hidden wherever it
// turns up. What is shorter is a placeholder, such as the "EMPTY" that local
// servers are given, and may well be a word of a reply.
const leastSecret = 8

// secretNames are in the names of headers, and of members of a query, that hold
// what is not to be shown.
var secretNames = regexp.MustCompile(`(?i)auth|cookie|credential|key|password|secret|^sig|token`)

// conceal has a value hidden from now on when its name says that it is a secret;
// of two words, as in "Bearer KEY", the second as well.
func (s *service) conceal(name, value string) {
	if !secretNames.MatchString(name) {
		return
	}
	_, second, _ := strings.Cut(value, " ")
	for _, secret := range []string{value, second} {
		if len(secret) >= leastSecret {
			s.secrets = append(s.secrets, secret)
		}
	}
}

// hide takes secrets out of a text that came from elsewhere.
func (s *service) hide(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
