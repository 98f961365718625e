package demo

import (
	"io"
	"net/http"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/websocket"
)

// maxText is the longest message of the chat and of the feed, in bytes.
const maxText = 500

// chat is a room in which everybody hears everybody. Nothing is kept.
type chat struct {
	room Room
	open *websocket.Handler
}

// ownRoom is the room of a demo that is alone.
type ownRoom struct{ websocket.Room }

func (r *ownRoom) Join(c *websocket.Conn)               { r.Room.Join(c) }
func (r *ownRoom) Broadcast(t websocket.Type, p []byte) { r.Room.Broadcast(t, p) }

func (c *chat) init(room Room) (err error) {
	if c.room = room; room == nil {
		c.room = new(ownRoom)
	}
	c.open, err = websocket.New(&websocket.Options{
		MaxMessage: maxText,
		OnOpen:     func(conn *websocket.Conn, _ *http.Request) { c.room.Join(conn) },
		OnMessage: func(_ *websocket.Conn, t websocket.Type, p []byte) {
			if t == websocket.TypeText {
				c.room.Broadcast(t, p)
			}
		},
	})
	return err
}

// feed is a stream of events that everybody can add to. The last ones are kept for clients that connect again.
type feed struct {
	topic *eventstream.Topic
	open  *eventstream.Handler
}

func (f *feed) init(topic *eventstream.Topic) (err error) {
	if f.topic = topic; topic == nil {
		if f.topic, err = eventstream.NewTopic(&eventstream.TopicOptions{HistoryEvents: 100}); err != nil {
			return err
		}
	}
	f.open, err = eventstream.New(&eventstream.Options{
		OnOpen:     func(s *eventstream.Stream, _ *http.Request) { f.topic.Join(s) },
		Retry:      feedRetry,
		MaxStreams: maxClocks,
	})
	return err
}

// publish sends the request's body to all.
func (f *feed) publish(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxText))
	if err != nil {
		http.Error(w, "at most 500 bytes", http.StatusRequestEntityTooLarge)
		return
	}
	if _, err := f.topic.Publish(eventstream.Event{Data: string(b)}); err != nil {
		http.Error(w, "the store does not respond", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
