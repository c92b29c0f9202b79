package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Prefix begins the variables of settings.
const Prefix = "STREAMGAUGE_"

// foreign are the beginnings of variables that have the prefix and are no
// settings: those of this project's tests, and those that Kubernetes gives every
// container where a service is named streamgauge.
var foreign = []string{Prefix + "TEST_", Prefix + "SERVICE_", Prefix + "PORT_"}

// Environment sets what variables name: Prefix and the path of a setting in
// capitals, KAFKA_SASL_USER for kafka.sasl.user. A variable with the prefix that
// is no setting is an error.
func Environment(into any, environ []string) error {
	fields := make(map[string]reflect.Value)
	variables(fields, reflect.ValueOf(into).Elem(), strings.TrimSuffix(Prefix, "_"))
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		f, ok := fields[name]
		if !ok {
			if isForeign(name) {
				continue
			}
			return fmt.Errorf("environment variable %s: no such setting", name)
		}
		if err := setField(f, value); err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
	}
	return nil
}

func isForeign(name string) bool {
	for _, prefix := range foreign {
		if strings.HasPrefix(name+"_", prefix) {
			return true
		}
	}
	return false
}

// variables finds the variable of every setting below v.
func variables(fields map[string]reflect.Value, v reflect.Value, path string) {
	for i := range v.NumField() {
		name := path + "_" + strings.ToUpper(v.Type().Field(i).Tag.Get("yaml"))
		if f := v.Field(i); f.Kind() == reflect.Struct {
			variables(fields, f, name)
		} else {
			fields[name] = f
		}
	}
}

// Lister is a list of more than texts: a variable sets its one element.
type Lister interface{ SetFirst(text string) }

func setField(f reflect.Value, value string) error {
	var err error
	if l, ok := f.Addr().Interface().(Lister); ok {
		l.SetFirst(value)
		return nil
	}
	switch f.Interface().(type) {
	case time.Duration:
		var d time.Duration
		d, err = time.ParseDuration(value)
		f.SetInt(int64(d))
	case []string:
		f.SetZero()
		if value != "" {
			f.Set(reflect.ValueOf(strings.Split(value, ",")))
		}
	case fmt.Stringer, string: // a Secret, or a text
		f.SetString(value)
	case bool:
		var b bool
		b, err = strconv.ParseBool(value)
		f.SetBool(b)
	case float64:
		var n float64
		n, err = strconv.ParseFloat(value, 64)
		f.SetFloat(n)
	default:
		var n int64
		n, err = strconv.ParseInt(value, 10, 64)
		f.SetInt(n)
	}
	if err != nil {
		return fmt.Errorf("want %s, got %.60q", wanted(f.Type()), value)
	}
	return nil
}

// wanted names what a setting of a type takes.
func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return `a duration such as 10s`
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "settings below it"
}

// mistake says in one line where and what is wrong with a file: line:column:
// what.
func mistake(file []byte, err error) string {
	at, what := (*token.Token)(nil), err.Error()
	var own yaml.Error
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var large *yaml.OverflowError
	switch {
	case errors.As(err, &unknown):
		p := unknown.Token.Position
		return fmt.Sprintf("%d:%d: no such setting: %s", p.Line, p.Column, unknown.Token.Value)
	case errors.As(err, &mistyped):
		at, what = mistyped.Token, fmt.Sprintf("want %s, got %.60q", wanted(mistyped.DstType), mistyped.Token.Value)
	case errors.As(err, &large):
		at, what = large.Token, fmt.Sprintf("%s is too large", large.SrcNum)
	case errors.As(err, &own):
		at, what = own.GetToken(), own.GetMessage()
	default: // of time.ParseDuration, as it stands
		for _, t := range lexer.Tokenize(string(file)) {
			if strings.HasSuffix(what, strconv.Quote(t.Value)) {
				at, what = t, fmt.Sprintf("want %s, got %.60q", wanted(reflect.TypeFor[time.Duration]()), t.Value)
				break
			}
		}
	}
	what = strings.Join(strings.Fields(what), " ")
	if at != nil && strings.Contains(strings.ToLower(keyOf(at)), "password") {
		what = "want a text" // and not what stands there
	}
	if at == nil {
		return " " + what
	}
	if key := keyOf(at); key != "" {
		what = key + ": " + what
	}
	return fmt.Sprintf("%d:%d: %s", at.Position.Line, at.Position.Column, what)
}

// keyOf is the key that a value belongs to; "" when it stands alone.
func keyOf(at *token.Token) string {
	if colon := at.Prev; colon != nil && colon.Type == token.MappingValueType && colon.Prev != nil {
		return colon.Prev.Value
	}
	return ""
}
