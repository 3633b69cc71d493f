// h2_callbacks.cc: what nghttp2 calls while it reads and writes a connection. It only notes: nothing here calls a handler but for body_room() and
// body_filled().

#include "runtime/net/http2/h2_session.h"

namespace serin::net {

struct H2Callbacks {
  static H2Session& session(void* user) { return *static_cast<H2Session*>(user); }
  static H2Stream* stream(nghttp2_session* raw, int32_t id) {
    return static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(raw, id));
  }

  static int on_begin_headers(nghttp2_session* raw, const nghttp2_frame* frame, void* user) {
    const int32_t id = frame->hd.stream_id;
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    H2Stream* known = stream(raw, id);
    if (!known && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      known = session(user).accept_stream(id);
      if (!known) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      nghttp2_session_set_stream_user_data(raw, id, known);
    }
    if (known) known->begin_fields();
    return 0;
  }

  static int on_header(nghttp2_session* raw, const nghttp2_frame* frame, const uint8_t* name, size_t name_size, const uint8_t* value,
                       size_t value_size, uint8_t, void*) {
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) {
      known->fields().add({reinterpret_cast<const char*>(name), name_size}, {reinterpret_cast<const char*>(value), value_size});
    }
    return 0;
  }

  static int on_invalid_header(nghttp2_session* raw, const nghttp2_frame* frame, const uint8_t*, size_t, const uint8_t*, size_t, uint8_t,
                               void*) {
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->fields().add_malformed();
    return 0;
  }

  static int on_frame(nghttp2_session* raw, const nghttp2_frame* frame, void* user) {
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->fields_done(end);
        break;
      case NGHTTP2_DATA:
        if (H2Stream* known = stream(raw, frame->hd.stream_id); known && end) known->input_ended();
        if (!end && frame->hd.length == 0) session(user).count_oddity();
        break;
      case NGHTTP2_WINDOW_UPDATE:
      case NGHTTP2_SETTINGS: session(user).windows_moved_ = true; break;
      case NGHTTP2_GOAWAY: session(user).on_goaway(); break;
      default: break;
    }
    return 0;
  }

  static int on_data(nghttp2_session* raw, uint8_t, int32_t id, const uint8_t* data, size_t size, void*) {
    nghttp2_session_consume_connection(raw, size);
    if (H2Stream* known = stream(raw, id)) known->take({reinterpret_cast<const char*>(data), size});
    return 0;
  }

  static int on_stream_close(nghttp2_session* raw, int32_t id, uint32_t error, void*) {
    if (H2Stream* known = stream(raw, id)) known->closed(error);
    return 0;
  }

  static int on_frame_sent(nghttp2_session* raw, const nghttp2_frame* frame, void*) {
    const bool carries_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (!carries_end || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    if (H2Stream* known = stream(raw, frame->hd.stream_id)) known->output_sent();
    return 0;
  }

  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame*, int, void* user) {
    session(user).count_oddity();
    return 0;
  }

  static int on_send_data(nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t size, nghttp2_data_source* source, void*) {
    constexpr size_t kFrameHead = 9;
    static_cast<H2Stream*>(source->ptr)->give({reinterpret_cast<const char*>(head), kFrameHead}, size);
    return 0;
  }

  static const nghttp2_session_callbacks* table() {
    static const nghttp2_session_callbacks* const made = [] {
      nghttp2_session_callbacks* callbacks = nullptr;
      nghttp2_session_callbacks_new(&callbacks);
      nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
      nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
      nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
      nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
      return callbacks;
    }();
    return made;
  }
};

const nghttp2_session_callbacks* h2_callbacks() { return H2Callbacks::table(); }

}  // namespace serin::net
