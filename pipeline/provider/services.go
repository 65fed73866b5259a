package provider

import (
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openService makes the client of a provider whose addresses have a version at
// their end, as base has: a base_url that has none gets that of base. own are
// members of requests that are no settings.
func openService(o Options, provider, base string, own map[string]string) (*service, error) {
	if err := o.noReplies(provider); err != nil {
		return nil, err
	}
	if err := o.ownMembers(own); err != nil {
		return nil, err
	}
	s, err := newService(o, base)
	if err == nil && !apiVersion.MatchString(s.base) {
		s.base += apiVersion.FindString(base)
	}
	return s, err
}

var apiVersion = regexp.MustCompile(`/v\d+(alpha|beta)?\d*$`)

// modelName is the model's name at its service.
func modelName(o Options) string {
	if o.Model != "" {
		return o.Model
	}
	return o.Name
}

// lenientJSON reads and writes what others wrote as they wrote it.
var lenientJSON = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// bodyOf is a request's body: the same one for the same request.
func bodyOf(request any) ([]byte, error) {
	body, err := json.Marshal(request, lenientJSON, json.Deterministic(true))
	if err != nil {
		return nil, wrongSetting("the request has no JSON form: %v", err)
	}
	return body, nil
}
