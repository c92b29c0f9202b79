package format

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON value.
const maxDepth = 200

var errEnd = errors.New("not JSON: ends early")

// scanner walks JSON text (RFC 8259) once, checking it as it goes. Its methods
// return what they stand on; positions are bytes.
type scanner struct {
	b     []byte
	i     int
	depth int
	buf   []byte // unescaped text, reused
	lone  bool   // the last text has half of a surrogate pair
}

func (s *scanner) fail() error {
	if s.i >= len(s.b) {
		return errEnd
	}
	return fmt.Errorf("not JSON: unexpected %s at byte %d", strconv.QuoteRune(rune(s.b[s.i])), s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek skips white space and returns the byte there, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) take(c byte) error {
	if s.peek() != c {
		return s.fail()
	}
	s.i++
	return nil
}

// members walks an object; each is called standing on the value and must
// consume it. The name is valid until the next call of the scanner.
func (s *scanner) members(each func(name []byte) error) error {
	if err := s.enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		if s.peek() == '}' && first {
			break
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.i++
			continue
		}
		break
	}
	return s.leave('}')
}

func (s *scanner) enter(c byte) error {
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	return s.take(c)
}

func (s *scanner) leave(c byte) error {
	s.depth--
	return s.take(c)
}

// skip passes over one value, checking it.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '{':
		return s.members(func([]byte) error { return s.skip() })
	case c == '[':
		return s.skipArray()
	case c == '"':
		_, err := s.text()
		return err
	case c == 't' || c == 'f' || c == 'n':
		_, err := s.word()
		return err
	default:
		_, err := s.number()
		return err
	}
}

func (s *scanner) skipArray() error {
	if err := s.enter('['); err != nil {
		return err
	}
	if s.peek() != ']' {
		for {
			if err := s.skip(); err != nil {
				return err
			}
			if s.peek() != ',' {
				break
			}
			s.i++
		}
	}
	return s.leave(']')
}

// word reads true, false or null.
func (s *scanner) word() (byte, error) {
	for _, w := range [...]string{"true", "false", "null"} {
		if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
			s.i += len(w)
			return w[0], nil
		}
	}
	return 0, s.fail()
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	start := s.i
	if s.at('-') {
		s.i++
	}
	if s.at('0') {
		s.i++
	} else if err := s.digits(); err != nil {
		return nil, err
	}
	if s.at('.') {
		s.i++
		if err := s.digits(); err != nil {
			return nil, err
		}
	}
	if s.at('e') || s.at('E') {
		s.i++
		if s.at('+') || s.at('-') {
			s.i++
		}
		if err := s.digits(); err != nil {
			return nil, err
		}
	}
	return s.b[start:s.i], nil
}

func (s *scanner) at(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }

func (s *scanner) digits() error {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	if s.i == start {
		return s.fail()
	}
	return nil
}

// text reads a string; the bytes are valid until the next text. Escapes that
// are no Unicode are grammatical JSON (RFC 8259, section 8.2): lone tells of them.
func (s *scanner) text() ([]byte, error) {
	s.lone = false
	if err := s.take('"'); err != nil {
		return nil, err
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], nil
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			return nil, s.fail()
		case c < utf8.RuneSelf:
			s.i++
		default:
			if err := s.rune(); err != nil {
				return nil, err
			}
		}
	}
	return nil, errEnd
}

func (s *scanner) rune() error {
	r, n := utf8.DecodeRune(s.b[s.i:])
	if r == utf8.RuneError && n < 2 {
		return fmt.Errorf("not JSON: not UTF-8 at byte %d", s.i)
	}
	s.i += n
	return nil
}

// escaped goes on with a string whose first escape is where the scanner stands.
func (s *scanner) escaped(start int) ([]byte, error) {
	s.buf = append(s.buf[:0], s.b[start:s.i]...)
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.buf, nil
		case c == '\\':
			s.i++
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, s.fail()
		default:
			from := s.i
			if err := s.rune(); err != nil {
				return nil, err
			}
			s.buf = append(s.buf, s.b[from:s.i]...)
		}
	}
	return nil, errEnd
}

func (s *scanner) escape() error {
	if s.i >= len(s.b) {
		return errEnd
	}
	c := s.b[s.i]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode()
	default:
		return s.fail()
	}
	s.i++
	s.buf = append(s.buf, c)
	return nil
}

// unicode reads \uXXXX, a surrogate pair as one rune and a lone surrogate as
// U+FFFD, which it notes.
func (s *scanner) unicode() error {
	r, err := s.hex4()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		low := rune(utf8.RuneError)
		if save := s.i; s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
			s.i++
			if low, err = s.hex4(); err != nil {
				return err
			}
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				s.i = save
			}
		}
		r = utf16.DecodeRune(r, low)
		s.lone = s.lone || r == utf8.RuneError
	}
	s.buf = utf8.AppendRune(s.buf, r)
	return nil
}

// hex4 stands on the u.
func (s *scanner) hex4() (rune, error) {
	if s.i+5 > len(s.b) {
		s.i = len(s.b)
		return 0, errEnd
	}
	n, err := strconv.ParseUint(string(s.b[s.i+1:s.i+5]), 16, 32)
	if err != nil {
		return 0, s.fail()
	}
	s.i += 5
	return rune(n), nil
}
