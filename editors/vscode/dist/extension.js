"use strict";
var __create = Object.create;
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __getProtoOf = Object.getPrototypeOf;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __commonJS = (cb, mod) => function __require() {
  try {
    return mod || (0, cb[__getOwnPropNames(cb)[0]])((mod = { exports: {} }).exports, mod), mod.exports;
  } catch (e) {
    throw mod = 0, e;
  }
};
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toESM = (mod, isNodeMode, target) => (target = mod != null ? __create(__getProtoOf(mod)) : {}, __copyProps(
  // If the importer is in node compatibility mode or this is not an ESM
  // file that has been converted to a CommonJS file using a Babel-
  // compatible transform (i.e. "__esModule" has not been set), then set
  // "default" to the CommonJS "module.exports" for node compatibility.
  isNodeMode || !mod || !mod.__esModule ? __defProp(target, "default", { value: mod, enumerable: true }) : target,
  mod
));
var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);

// node_modules/ws/lib/constants.js
var require_constants = __commonJS({
  "node_modules/ws/lib/constants.js"(exports2, module2) {
    "use strict";
    var BINARY_TYPES = ["nodebuffer", "arraybuffer", "fragments"];
    var hasBlob = typeof Blob !== "undefined";
    if (hasBlob) BINARY_TYPES.push("blob");
    module2.exports = {
      BINARY_TYPES,
      CLOSE_TIMEOUT: 3e4,
      EMPTY_BUFFER: Buffer.alloc(0),
      GUID: "258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
      hasBlob,
      kForOnEventAttribute: /* @__PURE__ */ Symbol("kIsForOnEventAttribute"),
      kListener: /* @__PURE__ */ Symbol("kListener"),
      kStatusCode: /* @__PURE__ */ Symbol("status-code"),
      kWebSocket: /* @__PURE__ */ Symbol("websocket"),
      NOOP: () => {
      }
    };
  }
});

// node_modules/ws/lib/buffer-util.js
var require_buffer_util = __commonJS({
  "node_modules/ws/lib/buffer-util.js"(exports2, module2) {
    "use strict";
    var { websocketMask, websocketUnmask } = require("http");
    var { EMPTY_BUFFER } = require_constants();
    var FastBuffer = Buffer[Symbol.species];
    function concat(list, totalLength) {
      if (list.length === 0) return EMPTY_BUFFER;
      if (list.length === 1) return list[0];
      const target = Buffer.allocUnsafe(totalLength);
      let offset = 0;
      for (let i = 0; i < list.length; i++) {
        const buf = list[i];
        target.set(buf, offset);
        offset += buf.length;
      }
      if (offset < totalLength) {
        return new FastBuffer(target.buffer, target.byteOffset, offset);
      }
      return target;
    }
    function _mask(source, mask, output, offset, length) {
      for (let i = 0; i < length; i++) {
        output[offset + i] = source[i] ^ mask[i & 3];
      }
    }
    function _unmask(buffer, mask) {
      for (let i = 0; i < buffer.length; i++) {
        buffer[i] ^= mask[i & 3];
      }
    }
    function toArrayBuffer(buf) {
      if (buf.length === buf.buffer.byteLength) {
        return buf.buffer;
      }
      return buf.buffer.slice(buf.byteOffset, buf.byteOffset + buf.length);
    }
    function toBuffer(data) {
      toBuffer.readOnly = true;
      if (Buffer.isBuffer(data)) return data;
      let buf;
      if (data instanceof ArrayBuffer) {
        buf = new FastBuffer(data);
      } else if (ArrayBuffer.isView(data)) {
        buf = new FastBuffer(data.buffer, data.byteOffset, data.byteLength);
      } else {
        buf = Buffer.from(data);
        toBuffer.readOnly = false;
      }
      return buf;
    }
    module2.exports = {
      concat,
      mask: _mask,
      toArrayBuffer,
      toBuffer,
      unmask: _unmask
    };
    if (websocketMask) {
      module2.exports.mask = function(source, mask, output, offset, length) {
        if (length < 24) _mask(source, mask, output, offset, length);
        else websocketMask(source, mask, output, offset, length);
      };
      module2.exports.unmask = function(buffer, mask) {
        if (buffer.length < 24) _unmask(buffer, mask);
        else websocketUnmask(buffer, mask);
      };
    } else if (!process.env.WS_NO_BUFFER_UTIL) {
      try {
        const bufferUtil = require("bufferutil");
        module2.exports.mask = function(source, mask, output, offset, length) {
          if (length < 48) _mask(source, mask, output, offset, length);
          else bufferUtil.mask(source, mask, output, offset, length);
        };
        module2.exports.unmask = function(buffer, mask) {
          if (buffer.length < 32) _unmask(buffer, mask);
          else bufferUtil.unmask(buffer, mask);
        };
      } catch (e) {
      }
    }
  }
});

// node_modules/ws/lib/limiter.js
var require_limiter = __commonJS({
  "node_modules/ws/lib/limiter.js"(exports2, module2) {
    "use strict";
    var kDone = /* @__PURE__ */ Symbol("kDone");
    var kRun = /* @__PURE__ */ Symbol("kRun");
    var Limiter = class {
      /**
       * Creates a new `Limiter`.
       *
       * @param {Number} [concurrency=Infinity] The maximum number of jobs allowed
       *     to run concurrently
       */
      constructor(concurrency) {
        this[kDone] = () => {
          this.pending--;
          this[kRun]();
        };
        this.concurrency = concurrency || Infinity;
        this.jobs = [];
        this.pending = 0;
      }
      /**
       * Adds a job to the queue.
       *
       * @param {Function} job The job to run
       * @public
       */
      add(job) {
        this.jobs.push(job);
        this[kRun]();
      }
      /**
       * Removes a job from the queue and runs it if possible.
       *
       * @private
       */
      [kRun]() {
        if (this.pending === this.concurrency) return;
        if (this.jobs.length) {
          const job = this.jobs.shift();
          this.pending++;
          job(this[kDone]);
        }
      }
    };
    module2.exports = Limiter;
  }
});

// node_modules/ws/lib/permessage-deflate.js
var require_permessage_deflate = __commonJS({
  "node_modules/ws/lib/permessage-deflate.js"(exports2, module2) {
    "use strict";
    var zlib = require("zlib");
    var bufferUtil = require_buffer_util();
    var Limiter = require_limiter();
    var { kStatusCode } = require_constants();
    var FastBuffer = Buffer[Symbol.species];
    var TRAILER = Buffer.from([0, 0, 255, 255]);
    var kPerMessageDeflate = /* @__PURE__ */ Symbol("permessage-deflate");
    var kTotalLength = /* @__PURE__ */ Symbol("total-length");
    var kCallback = /* @__PURE__ */ Symbol("callback");
    var kBuffers = /* @__PURE__ */ Symbol("buffers");
    var kError = /* @__PURE__ */ Symbol("error");
    var zlibLimiter;
    var PerMessageDeflate2 = class {
      /**
       * Creates a PerMessageDeflate instance.
       *
       * @param {Object} [options] Configuration options
       * @param {(Boolean|Number)} [options.clientMaxWindowBits] Advertise support
       *     for, or request, a custom client window size
       * @param {Boolean} [options.clientNoContextTakeover=false] Advertise/
       *     acknowledge disabling of client context takeover
       * @param {Number} [options.concurrencyLimit=10] The number of concurrent
       *     calls to zlib
       * @param {Boolean} [options.isServer=false] Create the instance in either
       *     server or client mode
       * @param {Number} [options.maxPayload=0] The maximum allowed message length
       * @param {(Boolean|Number)} [options.serverMaxWindowBits] Request/confirm the
       *     use of a custom server window size
       * @param {Boolean} [options.serverNoContextTakeover=false] Request/accept
       *     disabling of server context takeover
       * @param {Number} [options.threshold=1024] Size (in bytes) below which
       *     messages should not be compressed if context takeover is disabled
       * @param {Object} [options.zlibDeflateOptions] Options to pass to zlib on
       *     deflate
       * @param {Object} [options.zlibInflateOptions] Options to pass to zlib on
       *     inflate
       */
      constructor(options) {
        this._options = options || {};
        this._threshold = this._options.threshold !== void 0 ? this._options.threshold : 1024;
        this._maxPayload = this._options.maxPayload | 0;
        this._isServer = !!this._options.isServer;
        this._deflate = null;
        this._inflate = null;
        this.params = null;
        if (!zlibLimiter) {
          const concurrency = this._options.concurrencyLimit !== void 0 ? this._options.concurrencyLimit : 10;
          zlibLimiter = new Limiter(concurrency);
        }
      }
      /**
       * @type {String}
       */
      static get extensionName() {
        return "permessage-deflate";
      }
      /**
       * Create an extension negotiation offer.
       *
       * @return {Object} Extension parameters
       * @public
       */
      offer() {
        const params = {};
        if (this._options.serverNoContextTakeover) {
          params.server_no_context_takeover = true;
        }
        if (this._options.clientNoContextTakeover) {
          params.client_no_context_takeover = true;
        }
        if (this._options.serverMaxWindowBits) {
          params.server_max_window_bits = this._options.serverMaxWindowBits;
        }
        if (this._options.clientMaxWindowBits) {
          params.client_max_window_bits = this._options.clientMaxWindowBits;
        } else if (this._options.clientMaxWindowBits == null) {
          params.client_max_window_bits = true;
        }
        return params;
      }
      /**
       * Accept an extension negotiation offer/response.
       *
       * @param {Array} configurations The extension negotiation offers/reponse
       * @return {Object} Accepted configuration
       * @public
       */
      accept(configurations) {
        configurations = this.normalizeParams(configurations);
        this.params = this._isServer ? this.acceptAsServer(configurations) : this.acceptAsClient(configurations);
        return this.params;
      }
      /**
       * Releases all resources used by the extension.
       *
       * @public
       */
      cleanup() {
        if (this._inflate) {
          this._inflate.close();
          this._inflate = null;
        }
        if (this._deflate) {
          const callback = this._deflate[kCallback];
          this._deflate.close();
          this._deflate = null;
          if (callback) {
            callback(
              new Error(
                "The deflate stream was closed while data was being processed"
              )
            );
          }
        }
      }
      /**
       *  Accept an extension negotiation offer.
       *
       * @param {Array} offers The extension negotiation offers
       * @return {Object} Accepted configuration
       * @private
       */
      acceptAsServer(offers) {
        const opts = this._options;
        const accepted = offers.find((params) => {
          if (opts.serverNoContextTakeover === false && params.server_no_context_takeover || params.server_max_window_bits && (opts.serverMaxWindowBits === false || typeof opts.serverMaxWindowBits === "number" && opts.serverMaxWindowBits > params.server_max_window_bits) || typeof opts.clientMaxWindowBits === "number" && (typeof params.client_max_window_bits === "number" ? opts.clientMaxWindowBits > params.client_max_window_bits : !params.client_max_window_bits)) {
            return false;
          }
          return true;
        });
        if (!accepted) {
          throw new Error("None of the extension offers can be accepted");
        }
        if (opts.serverNoContextTakeover) {
          accepted.server_no_context_takeover = true;
        }
        if (opts.clientNoContextTakeover) {
          accepted.client_no_context_takeover = true;
        }
        if (typeof opts.serverMaxWindowBits === "number") {
          accepted.server_max_window_bits = opts.serverMaxWindowBits;
        }
        if (typeof opts.clientMaxWindowBits === "number") {
          accepted.client_max_window_bits = opts.clientMaxWindowBits;
        } else if (accepted.client_max_window_bits === true || opts.clientMaxWindowBits === false) {
          delete accepted.client_max_window_bits;
        }
        return accepted;
      }
      /**
       * Accept the extension negotiation response.
       *
       * @param {Array} response The extension negotiation response
       * @return {Object} Accepted configuration
       * @private
       */
      acceptAsClient(response) {
        const params = response[0];
        if (this._options.clientNoContextTakeover === false && params.client_no_context_takeover) {
          throw new Error('Unexpected parameter "client_no_context_takeover"');
        }
        if (!params.client_max_window_bits) {
          if (typeof this._options.clientMaxWindowBits === "number") {
            params.client_max_window_bits = this._options.clientMaxWindowBits;
          }
        } else if (this._options.clientMaxWindowBits === false || typeof this._options.clientMaxWindowBits === "number" && params.client_max_window_bits > this._options.clientMaxWindowBits) {
          throw new Error(
            'Unexpected or invalid parameter "client_max_window_bits"'
          );
        }
        return params;
      }
      /**
       * Normalize parameters.
       *
       * @param {Array} configurations The extension negotiation offers/reponse
       * @return {Array} The offers/response with normalized parameters
       * @private
       */
      normalizeParams(configurations) {
        configurations.forEach((params) => {
          Object.keys(params).forEach((key) => {
            let value = params[key];
            if (value.length > 1) {
              throw new Error(`Parameter "${key}" must have only a single value`);
            }
            value = value[0];
            if (key === "client_max_window_bits") {
              if (value !== true) {
                const num = +value;
                if (!Number.isInteger(num) || num < 8 || num > 15) {
                  throw new TypeError(
                    `Invalid value for parameter "${key}": ${value}`
                  );
                }
                value = num;
              } else if (!this._isServer) {
                throw new TypeError(
                  `Invalid value for parameter "${key}": ${value}`
                );
              }
            } else if (key === "server_max_window_bits") {
              const num = +value;
              if (!Number.isInteger(num) || num < 8 || num > 15) {
                throw new TypeError(
                  `Invalid value for parameter "${key}": ${value}`
                );
              }
              value = num;
            } else if (key === "client_no_context_takeover" || key === "server_no_context_takeover") {
              if (value !== true) {
                throw new TypeError(
                  `Invalid value for parameter "${key}": ${value}`
                );
              }
            } else {
              throw new Error(`Unknown parameter "${key}"`);
            }
            params[key] = value;
          });
        });
        return configurations;
      }
      /**
       * Decompress data. Concurrency limited.
       *
       * @param {Buffer} data Compressed data
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @public
       */
      decompress(data, fin, callback) {
        zlibLimiter.add((done) => {
          this._decompress(data, fin, (err, result) => {
            done();
            callback(err, result);
          });
        });
      }
      /**
       * Compress data. Concurrency limited.
       *
       * @param {(Buffer|String)} data Data to compress
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @public
       */
      compress(data, fin, callback) {
        zlibLimiter.add((done) => {
          this._compress(data, fin, (err, result) => {
            done();
            callback(err, result);
          });
        });
      }
      /**
       * Decompress data.
       *
       * @param {Buffer} data Compressed data
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @private
       */
      _decompress(data, fin, callback) {
        const endpoint = this._isServer ? "client" : "server";
        if (!this._inflate) {
          const key = `${endpoint}_max_window_bits`;
          const windowBits = typeof this.params[key] !== "number" ? zlib.Z_DEFAULT_WINDOWBITS : this.params[key];
          this._inflate = zlib.createInflateRaw({
            ...this._options.zlibInflateOptions,
            windowBits
          });
          this._inflate[kPerMessageDeflate] = this;
          this._inflate[kTotalLength] = 0;
          this._inflate[kBuffers] = [];
          this._inflate.on("error", inflateOnError);
          this._inflate.on("data", inflateOnData);
        }
        this._inflate[kCallback] = callback;
        this._inflate.write(data);
        if (fin) this._inflate.write(TRAILER);
        this._inflate.flush(() => {
          const err = this._inflate[kError];
          if (err) {
            this._inflate.close();
            this._inflate = null;
            callback(err);
            return;
          }
          const data2 = bufferUtil.concat(
            this._inflate[kBuffers],
            this._inflate[kTotalLength]
          );
          if (this._inflate._readableState.endEmitted) {
            this._inflate.close();
            this._inflate = null;
          } else {
            this._inflate[kTotalLength] = 0;
            this._inflate[kBuffers] = [];
            if (fin && this.params[`${endpoint}_no_context_takeover`]) {
              this._inflate.reset();
            }
          }
          callback(null, data2);
        });
      }
      /**
       * Compress data.
       *
       * @param {(Buffer|String)} data Data to compress
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @private
       */
      _compress(data, fin, callback) {
        const endpoint = this._isServer ? "server" : "client";
        if (!this._deflate) {
          const key = `${endpoint}_max_window_bits`;
          const windowBits = typeof this.params[key] !== "number" ? zlib.Z_DEFAULT_WINDOWBITS : this.params[key];
          this._deflate = zlib.createDeflateRaw({
            ...this._options.zlibDeflateOptions,
            windowBits
          });
          this._deflate[kTotalLength] = 0;
          this._deflate[kBuffers] = [];
          this._deflate.on("data", deflateOnData);
        }
        this._deflate[kCallback] = callback;
        this._deflate.write(data);
        this._deflate.flush(zlib.Z_SYNC_FLUSH, () => {
          if (!this._deflate) {
            return;
          }
          let data2 = bufferUtil.concat(
            this._deflate[kBuffers],
            this._deflate[kTotalLength]
          );
          if (fin) {
            data2 = new FastBuffer(data2.buffer, data2.byteOffset, data2.length - 4);
          }
          this._deflate[kCallback] = null;
          this._deflate[kTotalLength] = 0;
          this._deflate[kBuffers] = [];
          if (fin && this.params[`${endpoint}_no_context_takeover`]) {
            this._deflate.reset();
          }
          callback(null, data2);
        });
      }
    };
    module2.exports = PerMessageDeflate2;
    function deflateOnData(chunk) {
      this[kBuffers].push(chunk);
      this[kTotalLength] += chunk.length;
    }
    function inflateOnData(chunk) {
      this[kTotalLength] += chunk.length;
      if (this[kPerMessageDeflate]._maxPayload < 1 || this[kTotalLength] <= this[kPerMessageDeflate]._maxPayload) {
        this[kBuffers].push(chunk);
        return;
      }
      this[kError] = new RangeError("Max payload size exceeded");
      this[kError].code = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
      this[kError][kStatusCode] = 1009;
      this.removeListener("data", inflateOnData);
      this.reset();
    }
    function inflateOnError(err) {
      this[kPerMessageDeflate]._inflate = null;
      if (this[kError]) {
        this[kCallback](this[kError]);
        return;
      }
      err[kStatusCode] = 1007;
      this[kCallback](err);
    }
  }
});

// node_modules/ws/lib/validation.js
var require_validation = __commonJS({
  "node_modules/ws/lib/validation.js"(exports2, module2) {
    "use strict";
    var { isUtf8 } = require("buffer");
    var { hasBlob } = require_constants();
    var tokenChars = [
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      // 0 - 15
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      // 16 - 31
      0,
      1,
      0,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      1,
      1,
      0,
      1,
      1,
      0,
      // 32 - 47
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      // 48 - 63
      0,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      // 64 - 79
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      0,
      1,
      1,
      // 80 - 95
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      // 96 - 111
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      1,
      0,
      1,
      0
      // 112 - 127
    ];
    function isValidStatusCode(code) {
      return code >= 1e3 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006 || code >= 3e3 && code <= 4999;
    }
    function _isValidUTF8(buf) {
      const len = buf.length;
      let i = 0;
      while (i < len) {
        if ((buf[i] & 128) === 0) {
          i++;
        } else if ((buf[i] & 224) === 192) {
          if (i + 1 === len || (buf[i + 1] & 192) !== 128 || (buf[i] & 254) === 192) {
            return false;
          }
          i += 2;
        } else if ((buf[i] & 240) === 224) {
          if (i + 2 >= len || (buf[i + 1] & 192) !== 128 || (buf[i + 2] & 192) !== 128 || buf[i] === 224 && (buf[i + 1] & 224) === 128 || // Overlong
          buf[i] === 237 && (buf[i + 1] & 224) === 160) {
            return false;
          }
          i += 3;
        } else if ((buf[i] & 248) === 240) {
          if (i + 3 >= len || (buf[i + 1] & 192) !== 128 || (buf[i + 2] & 192) !== 128 || (buf[i + 3] & 192) !== 128 || buf[i] === 240 && (buf[i + 1] & 240) === 128 || // Overlong
          buf[i] === 244 && buf[i + 1] > 143 || buf[i] > 244) {
            return false;
          }
          i += 4;
        } else {
          return false;
        }
      }
      return true;
    }
    function isBlob(value) {
      return hasBlob && typeof value === "object" && typeof value.arrayBuffer === "function" && typeof value.type === "string" && typeof value.stream === "function" && (value[Symbol.toStringTag] === "Blob" || value[Symbol.toStringTag] === "File");
    }
    module2.exports = {
      isBlob,
      isValidStatusCode,
      isValidUTF8: _isValidUTF8,
      tokenChars
    };
    if (isUtf8) {
      module2.exports.isValidUTF8 = function(buf) {
        return buf.length < 24 ? _isValidUTF8(buf) : isUtf8(buf);
      };
    } else if (!process.env.WS_NO_UTF_8_VALIDATE) {
      try {
        const isValidUTF8 = require("utf-8-validate");
        module2.exports.isValidUTF8 = function(buf) {
          return buf.length < 32 ? _isValidUTF8(buf) : isValidUTF8(buf);
        };
      } catch (e) {
      }
    }
  }
});

// node_modules/ws/lib/receiver.js
var require_receiver = __commonJS({
  "node_modules/ws/lib/receiver.js"(exports2, module2) {
    "use strict";
    var { Writable } = require("stream");
    var PerMessageDeflate2 = require_permessage_deflate();
    var {
      BINARY_TYPES,
      EMPTY_BUFFER,
      kStatusCode,
      kWebSocket
    } = require_constants();
    var { concat, toArrayBuffer, unmask } = require_buffer_util();
    var { isValidStatusCode, isValidUTF8 } = require_validation();
    var FastBuffer = Buffer[Symbol.species];
    var GET_INFO = 0;
    var GET_PAYLOAD_LENGTH_16 = 1;
    var GET_PAYLOAD_LENGTH_64 = 2;
    var GET_MASK = 3;
    var GET_DATA = 4;
    var INFLATING = 5;
    var DEFER_EVENT = 6;
    var Receiver2 = class extends Writable {
      /**
       * Creates a Receiver instance.
       *
       * @param {Object} [options] Options object
       * @param {Boolean} [options.allowSynchronousEvents=true] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {String} [options.binaryType=nodebuffer] The type for binary data
       * @param {Object} [options.extensions] An object containing the negotiated
       *     extensions
       * @param {Boolean} [options.isServer=false] Specifies whether to operate in
       *     client or server mode
       * @param {Number} [options.maxBufferedChunks=0] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=0] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=0] The maximum allowed message length
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       */
      constructor(options = {}) {
        super();
        this._allowSynchronousEvents = options.allowSynchronousEvents !== void 0 ? options.allowSynchronousEvents : true;
        this._binaryType = options.binaryType || BINARY_TYPES[0];
        this._extensions = options.extensions || {};
        this._isServer = !!options.isServer;
        this._maxBufferedChunks = options.maxBufferedChunks | 0;
        this._maxFragments = options.maxFragments | 0;
        this._maxPayload = options.maxPayload | 0;
        this._skipUTF8Validation = !!options.skipUTF8Validation;
        this[kWebSocket] = void 0;
        this._bufferedBytes = 0;
        this._buffers = [];
        this._compressed = false;
        this._payloadLength = 0;
        this._mask = void 0;
        this._fragmented = 0;
        this._masked = false;
        this._fin = false;
        this._opcode = 0;
        this._totalPayloadLength = 0;
        this._messageLength = 0;
        this._numFragments = 0;
        this._fragments = [];
        this._errored = false;
        this._loop = false;
        this._state = GET_INFO;
      }
      /**
       * Implements `Writable.prototype._write()`.
       *
       * @param {Buffer} chunk The chunk of data to write
       * @param {String} encoding The character encoding of `chunk`
       * @param {Function} cb Callback
       * @private
       */
      _write(chunk, encoding, cb) {
        if (this._opcode === 8 && this._state == GET_INFO) return cb();
        if (this._maxBufferedChunks > 0 && this._buffers.length >= this._maxBufferedChunks) {
          cb(
            this.createError(
              RangeError,
              "Too many buffered chunks",
              false,
              1008,
              "WS_ERR_TOO_MANY_BUFFERED_PARTS"
            )
          );
          return;
        }
        this._bufferedBytes += chunk.length;
        this._buffers.push(chunk);
        this.startLoop(cb);
      }
      /**
       * Consumes `n` bytes from the buffered data.
       *
       * @param {Number} n The number of bytes to consume
       * @return {Buffer} The consumed bytes
       * @private
       */
      consume(n) {
        this._bufferedBytes -= n;
        if (n === this._buffers[0].length) return this._buffers.shift();
        if (n < this._buffers[0].length) {
          const buf = this._buffers[0];
          this._buffers[0] = new FastBuffer(
            buf.buffer,
            buf.byteOffset + n,
            buf.length - n
          );
          return new FastBuffer(buf.buffer, buf.byteOffset, n);
        }
        const dst = Buffer.allocUnsafe(n);
        do {
          const buf = this._buffers[0];
          const offset = dst.length - n;
          if (n >= buf.length) {
            dst.set(this._buffers.shift(), offset);
          } else {
            dst.set(new Uint8Array(buf.buffer, buf.byteOffset, n), offset);
            this._buffers[0] = new FastBuffer(
              buf.buffer,
              buf.byteOffset + n,
              buf.length - n
            );
          }
          n -= buf.length;
        } while (n > 0);
        return dst;
      }
      /**
       * Starts the parsing loop.
       *
       * @param {Function} cb Callback
       * @private
       */
      startLoop(cb) {
        this._loop = true;
        do {
          switch (this._state) {
            case GET_INFO:
              this.getInfo(cb);
              break;
            case GET_PAYLOAD_LENGTH_16:
              this.getPayloadLength16(cb);
              break;
            case GET_PAYLOAD_LENGTH_64:
              this.getPayloadLength64(cb);
              break;
            case GET_MASK:
              this.getMask();
              break;
            case GET_DATA:
              this.getData(cb);
              break;
            case INFLATING:
            case DEFER_EVENT:
              this._loop = false;
              return;
          }
        } while (this._loop);
        if (!this._errored) cb();
      }
      /**
       * Reads the first two bytes of a frame.
       *
       * @param {Function} cb Callback
       * @private
       */
      getInfo(cb) {
        if (this._bufferedBytes < 2) {
          this._loop = false;
          return;
        }
        const buf = this.consume(2);
        if ((buf[0] & 48) !== 0) {
          const error = this.createError(
            RangeError,
            "RSV2 and RSV3 must be clear",
            true,
            1002,
            "WS_ERR_UNEXPECTED_RSV_2_3"
          );
          cb(error);
          return;
        }
        const compressed = (buf[0] & 64) === 64;
        if (compressed && !this._extensions[PerMessageDeflate2.extensionName]) {
          const error = this.createError(
            RangeError,
            "RSV1 must be clear",
            true,
            1002,
            "WS_ERR_UNEXPECTED_RSV_1"
          );
          cb(error);
          return;
        }
        this._fin = (buf[0] & 128) === 128;
        this._opcode = buf[0] & 15;
        this._payloadLength = buf[1] & 127;
        if (this._opcode === 0) {
          if (compressed) {
            const error = this.createError(
              RangeError,
              "RSV1 must be clear",
              true,
              1002,
              "WS_ERR_UNEXPECTED_RSV_1"
            );
            cb(error);
            return;
          }
          if (!this._fragmented) {
            const error = this.createError(
              RangeError,
              "invalid opcode 0",
              true,
              1002,
              "WS_ERR_INVALID_OPCODE"
            );
            cb(error);
            return;
          }
          this._opcode = this._fragmented;
        } else if (this._opcode === 1 || this._opcode === 2) {
          if (this._fragmented) {
            const error = this.createError(
              RangeError,
              `invalid opcode ${this._opcode}`,
              true,
              1002,
              "WS_ERR_INVALID_OPCODE"
            );
            cb(error);
            return;
          }
          this._compressed = compressed;
        } else if (this._opcode > 7 && this._opcode < 11) {
          if (!this._fin) {
            const error = this.createError(
              RangeError,
              "FIN must be set",
              true,
              1002,
              "WS_ERR_EXPECTED_FIN"
            );
            cb(error);
            return;
          }
          if (compressed) {
            const error = this.createError(
              RangeError,
              "RSV1 must be clear",
              true,
              1002,
              "WS_ERR_UNEXPECTED_RSV_1"
            );
            cb(error);
            return;
          }
          if (this._payloadLength > 125 || this._opcode === 8 && this._payloadLength === 1) {
            const error = this.createError(
              RangeError,
              `invalid payload length ${this._payloadLength}`,
              true,
              1002,
              "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH"
            );
            cb(error);
            return;
          }
        } else {
          const error = this.createError(
            RangeError,
            `invalid opcode ${this._opcode}`,
            true,
            1002,
            "WS_ERR_INVALID_OPCODE"
          );
          cb(error);
          return;
        }
        if (!this._fin && !this._fragmented) this._fragmented = this._opcode;
        this._masked = (buf[1] & 128) === 128;
        if (this._isServer) {
          if (!this._masked) {
            const error = this.createError(
              RangeError,
              "MASK must be set",
              true,
              1002,
              "WS_ERR_EXPECTED_MASK"
            );
            cb(error);
            return;
          }
        } else if (this._masked) {
          const error = this.createError(
            RangeError,
            "MASK must be clear",
            true,
            1002,
            "WS_ERR_UNEXPECTED_MASK"
          );
          cb(error);
          return;
        }
        if (this._payloadLength === 126) this._state = GET_PAYLOAD_LENGTH_16;
        else if (this._payloadLength === 127) this._state = GET_PAYLOAD_LENGTH_64;
        else this.haveLength(cb);
      }
      /**
       * Gets extended payload length (7+16).
       *
       * @param {Function} cb Callback
       * @private
       */
      getPayloadLength16(cb) {
        if (this._bufferedBytes < 2) {
          this._loop = false;
          return;
        }
        this._payloadLength = this.consume(2).readUInt16BE(0);
        this.haveLength(cb);
      }
      /**
       * Gets extended payload length (7+64).
       *
       * @param {Function} cb Callback
       * @private
       */
      getPayloadLength64(cb) {
        if (this._bufferedBytes < 8) {
          this._loop = false;
          return;
        }
        const buf = this.consume(8);
        const num = buf.readUInt32BE(0);
        if (num > Math.pow(2, 53 - 32) - 1) {
          const error = this.createError(
            RangeError,
            "Unsupported WebSocket frame: payload length > 2^53 - 1",
            false,
            1009,
            "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH"
          );
          cb(error);
          return;
        }
        this._payloadLength = num * Math.pow(2, 32) + buf.readUInt32BE(4);
        this.haveLength(cb);
      }
      /**
       * Payload length has been read.
       *
       * @param {Function} cb Callback
       * @private
       */
      haveLength(cb) {
        if (this._payloadLength && this._opcode < 8) {
          this._totalPayloadLength += this._payloadLength;
          if (this._totalPayloadLength > this._maxPayload && this._maxPayload > 0) {
            const error = this.createError(
              RangeError,
              "Max payload size exceeded",
              false,
              1009,
              "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
            );
            cb(error);
            return;
          }
        }
        if (this._masked) this._state = GET_MASK;
        else this._state = GET_DATA;
      }
      /**
       * Reads mask bytes.
       *
       * @private
       */
      getMask() {
        if (this._bufferedBytes < 4) {
          this._loop = false;
          return;
        }
        this._mask = this.consume(4);
        this._state = GET_DATA;
      }
      /**
       * Reads data bytes.
       *
       * @param {Function} cb Callback
       * @private
       */
      getData(cb) {
        let data = EMPTY_BUFFER;
        if (this._payloadLength) {
          if (this._bufferedBytes < this._payloadLength) {
            this._loop = false;
            return;
          }
          data = this.consume(this._payloadLength);
          if (this._masked && (this._mask[0] | this._mask[1] | this._mask[2] | this._mask[3]) !== 0) {
            unmask(data, this._mask);
          }
        }
        this._mask = void 0;
        if (this._opcode > 7) {
          this.controlMessage(data, cb);
          return;
        }
        if (this._maxFragments > 0 && ++this._numFragments > this._maxFragments) {
          const error = this.createError(
            RangeError,
            "Too many message fragments",
            false,
            1008,
            "WS_ERR_TOO_MANY_BUFFERED_PARTS"
          );
          cb(error);
          return;
        }
        if (this._compressed) {
          this._state = INFLATING;
          this.decompress(data, cb);
          return;
        }
        if (data.length) {
          this._messageLength = this._totalPayloadLength;
          this._fragments.push(data);
        }
        this.dataMessage(cb);
      }
      /**
       * Decompresses data.
       *
       * @param {Buffer} data Compressed data
       * @param {Function} cb Callback
       * @private
       */
      decompress(data, cb) {
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        perMessageDeflate.decompress(data, this._fin, (err, buf) => {
          if (err) return cb(err);
          if (buf.length) {
            this._messageLength += buf.length;
            if (this._messageLength > this._maxPayload && this._maxPayload > 0) {
              const error = this.createError(
                RangeError,
                "Max payload size exceeded",
                false,
                1009,
                "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
              );
              cb(error);
              return;
            }
            this._fragments.push(buf);
          }
          this.dataMessage(cb);
          if (this._state === GET_INFO) this.startLoop(cb);
        });
      }
      /**
       * Handles a data message.
       *
       * @param {Function} cb Callback
       * @private
       */
      dataMessage(cb) {
        if (!this._fin) {
          this._state = GET_INFO;
          return;
        }
        const messageLength = this._messageLength;
        const fragments = this._fragments;
        this._totalPayloadLength = 0;
        this._messageLength = 0;
        this._fragmented = 0;
        this._numFragments = 0;
        this._fragments = [];
        if (this._opcode === 2) {
          let data;
          if (this._binaryType === "nodebuffer") {
            data = concat(fragments, messageLength);
          } else if (this._binaryType === "arraybuffer") {
            data = toArrayBuffer(concat(fragments, messageLength));
          } else if (this._binaryType === "blob") {
            data = new Blob(fragments);
          } else {
            data = fragments;
          }
          if (this._allowSynchronousEvents) {
            this.emit("message", data, true);
            this._state = GET_INFO;
          } else {
            this._state = DEFER_EVENT;
            setImmediate(() => {
              this.emit("message", data, true);
              this._state = GET_INFO;
              this.startLoop(cb);
            });
          }
        } else {
          const buf = concat(fragments, messageLength);
          if (!this._skipUTF8Validation && !isValidUTF8(buf)) {
            const error = this.createError(
              Error,
              "invalid UTF-8 sequence",
              true,
              1007,
              "WS_ERR_INVALID_UTF8"
            );
            cb(error);
            return;
          }
          if (this._state === INFLATING || this._allowSynchronousEvents) {
            this.emit("message", buf, false);
            this._state = GET_INFO;
          } else {
            this._state = DEFER_EVENT;
            setImmediate(() => {
              this.emit("message", buf, false);
              this._state = GET_INFO;
              this.startLoop(cb);
            });
          }
        }
      }
      /**
       * Handles a control message.
       *
       * @param {Buffer} data Data to handle
       * @return {(Error|RangeError|undefined)} A possible error
       * @private
       */
      controlMessage(data, cb) {
        if (this._opcode === 8) {
          if (data.length === 0) {
            this._loop = false;
            this.emit("conclude", 1005, EMPTY_BUFFER);
            this.end();
          } else {
            const code = data.readUInt16BE(0);
            if (!isValidStatusCode(code)) {
              const error = this.createError(
                RangeError,
                `invalid status code ${code}`,
                true,
                1002,
                "WS_ERR_INVALID_CLOSE_CODE"
              );
              cb(error);
              return;
            }
            const buf = new FastBuffer(
              data.buffer,
              data.byteOffset + 2,
              data.length - 2
            );
            if (!this._skipUTF8Validation && !isValidUTF8(buf)) {
              const error = this.createError(
                Error,
                "invalid UTF-8 sequence",
                true,
                1007,
                "WS_ERR_INVALID_UTF8"
              );
              cb(error);
              return;
            }
            this._loop = false;
            this.emit("conclude", code, buf);
            this.end();
          }
          this._state = GET_INFO;
          return;
        }
        if (this._allowSynchronousEvents) {
          this.emit(this._opcode === 9 ? "ping" : "pong", data);
          this._state = GET_INFO;
        } else {
          this._state = DEFER_EVENT;
          setImmediate(() => {
            this.emit(this._opcode === 9 ? "ping" : "pong", data);
            this._state = GET_INFO;
            this.startLoop(cb);
          });
        }
      }
      /**
       * Builds an error object.
       *
       * @param {function(new:Error|RangeError)} ErrorCtor The error constructor
       * @param {String} message The error message
       * @param {Boolean} prefix Specifies whether or not to add a default prefix to
       *     `message`
       * @param {Number} statusCode The status code
       * @param {String} errorCode The exposed error code
       * @return {(Error|RangeError)} The error
       * @private
       */
      createError(ErrorCtor, message, prefix, statusCode, errorCode) {
        this._loop = false;
        this._errored = true;
        const err = new ErrorCtor(
          prefix ? `Invalid WebSocket frame: ${message}` : message
        );
        Error.captureStackTrace(err, this.createError);
        err.code = errorCode;
        err[kStatusCode] = statusCode;
        return err;
      }
    };
    module2.exports = Receiver2;
  }
});

// node_modules/ws/lib/sender.js
var require_sender = __commonJS({
  "node_modules/ws/lib/sender.js"(exports2, module2) {
    "use strict";
    var { Duplex } = require("stream");
    var { randomFillSync } = require("crypto");
    var {
      types: { isUint8Array }
    } = require("util");
    var PerMessageDeflate2 = require_permessage_deflate();
    var { EMPTY_BUFFER, kWebSocket, NOOP } = require_constants();
    var { isBlob, isValidStatusCode } = require_validation();
    var { mask: applyMask, toBuffer } = require_buffer_util();
    var kByteLength = /* @__PURE__ */ Symbol("kByteLength");
    var maskBuffer = Buffer.alloc(4);
    var RANDOM_POOL_SIZE = 8 * 1024;
    var randomPool;
    var randomPoolPointer = RANDOM_POOL_SIZE;
    var DEFAULT = 0;
    var DEFLATING = 1;
    var GET_BLOB_DATA = 2;
    var Sender2 = class _Sender {
      /**
       * Creates a Sender instance.
       *
       * @param {Duplex} socket The connection socket
       * @param {Object} [extensions] An object containing the negotiated extensions
       * @param {Function} [generateMask] The function used to generate the masking
       *     key
       */
      constructor(socket, extensions5, generateMask) {
        this._extensions = extensions5 || {};
        if (generateMask) {
          this._generateMask = generateMask;
          this._maskBuffer = Buffer.alloc(4);
        }
        this._socket = socket;
        this._firstFragment = true;
        this._compress = false;
        this._bufferedBytes = 0;
        this._queue = [];
        this._state = DEFAULT;
        this.onerror = NOOP;
        this[kWebSocket] = void 0;
      }
      /**
       * Frames a piece of data according to the HyBi WebSocket protocol.
       *
       * @param {(Buffer|String)} data The data to frame
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @return {(Buffer|String)[]} The framed data
       * @public
       */
      static frame(data, options) {
        let mask;
        let merge = false;
        let offset = 2;
        let skipMasking = false;
        if (options.mask) {
          mask = options.maskBuffer || maskBuffer;
          if (options.generateMask) {
            options.generateMask(mask);
          } else {
            if (randomPoolPointer === RANDOM_POOL_SIZE) {
              if (randomPool === void 0) {
                randomPool = Buffer.alloc(RANDOM_POOL_SIZE);
              }
              randomFillSync(randomPool, 0, RANDOM_POOL_SIZE);
              randomPoolPointer = 0;
            }
            mask[0] = randomPool[randomPoolPointer++];
            mask[1] = randomPool[randomPoolPointer++];
            mask[2] = randomPool[randomPoolPointer++];
            mask[3] = randomPool[randomPoolPointer++];
          }
          skipMasking = (mask[0] | mask[1] | mask[2] | mask[3]) === 0;
          offset = 6;
        }
        let dataLength;
        if (typeof data === "string") {
          if ((!options.mask || skipMasking) && options[kByteLength] !== void 0) {
            dataLength = options[kByteLength];
          } else {
            data = Buffer.from(data);
            dataLength = data.length;
          }
        } else {
          dataLength = data.length;
          merge = options.mask && options.readOnly && !skipMasking;
        }
        let payloadLength = dataLength;
        if (dataLength >= 65536) {
          offset += 8;
          payloadLength = 127;
        } else if (dataLength > 125) {
          offset += 2;
          payloadLength = 126;
        }
        const target = Buffer.allocUnsafe(merge ? dataLength + offset : offset);
        target[0] = options.fin ? options.opcode | 128 : options.opcode;
        if (options.rsv1) target[0] |= 64;
        target[1] = payloadLength;
        if (payloadLength === 126) {
          target.writeUInt16BE(dataLength, 2);
        } else if (payloadLength === 127) {
          target[2] = target[3] = 0;
          target.writeUIntBE(dataLength, 4, 6);
        }
        if (!options.mask) {
          return dataLength ? [target, data] : [target];
        }
        target[1] |= 128;
        target[offset - 4] = mask[0];
        target[offset - 3] = mask[1];
        target[offset - 2] = mask[2];
        target[offset - 1] = mask[3];
        if (!dataLength) return [target];
        if (skipMasking) return [target, data];
        if (merge) {
          applyMask(data, mask, target, offset, dataLength);
          return [target];
        }
        applyMask(data, mask, data, 0, dataLength);
        return [target, data];
      }
      /**
       * Sends a close message to the other peer.
       *
       * @param {Number} [code] The status code component of the body
       * @param {(String|Buffer)} [data] The message component of the body
       * @param {Boolean} [mask=false] Specifies whether or not to mask the message
       * @param {Function} [cb] Callback
       * @public
       */
      close(code, data, mask, cb) {
        let buf;
        if (code === void 0) {
          buf = EMPTY_BUFFER;
        } else if (typeof code !== "number" || !isValidStatusCode(code)) {
          throw new TypeError("First argument must be a valid error code number");
        } else if (data === void 0 || !data.length) {
          buf = Buffer.allocUnsafe(2);
          buf.writeUInt16BE(code, 0);
        } else {
          const length = Buffer.byteLength(data);
          if (length > 123) {
            throw new RangeError("The message must not be greater than 123 bytes");
          }
          buf = Buffer.allocUnsafe(2 + length);
          buf.writeUInt16BE(code, 0);
          if (typeof data === "string") {
            buf.write(data, 2);
          } else if (isUint8Array(data)) {
            buf.set(data, 2);
          } else {
            throw new TypeError("Second argument must be a string or a Uint8Array");
          }
        }
        const options = {
          [kByteLength]: buf.length,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 8,
          readOnly: false,
          rsv1: false
        };
        if (this._state !== DEFAULT) {
          this.enqueue([this.dispatch, buf, false, options, cb]);
        } else {
          this.sendFrame(_Sender.frame(buf, options), cb);
        }
      }
      /**
       * Sends a ping message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Boolean} [mask=false] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback
       * @public
       */
      ping(data, mask, cb) {
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (byteLength > 125) {
          throw new RangeError("The data size must not be greater than 125 bytes");
        }
        const options = {
          [kByteLength]: byteLength,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 9,
          readOnly,
          rsv1: false
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([this.getBlobData, data, false, options, cb]);
          } else {
            this.getBlobData(data, false, options, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([this.dispatch, data, false, options, cb]);
        } else {
          this.sendFrame(_Sender.frame(data, options), cb);
        }
      }
      /**
       * Sends a pong message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Boolean} [mask=false] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback
       * @public
       */
      pong(data, mask, cb) {
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (byteLength > 125) {
          throw new RangeError("The data size must not be greater than 125 bytes");
        }
        const options = {
          [kByteLength]: byteLength,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 10,
          readOnly,
          rsv1: false
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([this.getBlobData, data, false, options, cb]);
          } else {
            this.getBlobData(data, false, options, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([this.dispatch, data, false, options, cb]);
        } else {
          this.sendFrame(_Sender.frame(data, options), cb);
        }
      }
      /**
       * Sends a data message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Object} options Options object
       * @param {Boolean} [options.binary=false] Specifies whether `data` is binary
       *     or text
       * @param {Boolean} [options.compress=false] Specifies whether or not to
       *     compress `data`
       * @param {Boolean} [options.fin=false] Specifies whether the fragment is the
       *     last one
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Function} [cb] Callback
       * @public
       */
      send(data, options, cb) {
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        let opcode = options.binary ? 2 : 1;
        let rsv1 = options.compress;
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (this._firstFragment) {
          this._firstFragment = false;
          if (rsv1 && perMessageDeflate && perMessageDeflate.params[perMessageDeflate._isServer ? "server_no_context_takeover" : "client_no_context_takeover"]) {
            rsv1 = byteLength >= perMessageDeflate._threshold;
          }
          this._compress = rsv1;
        } else {
          rsv1 = false;
          opcode = 0;
        }
        if (options.fin) this._firstFragment = true;
        const opts = {
          [kByteLength]: byteLength,
          fin: options.fin,
          generateMask: this._generateMask,
          mask: options.mask,
          maskBuffer: this._maskBuffer,
          opcode,
          readOnly,
          rsv1
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([this.getBlobData, data, this._compress, opts, cb]);
          } else {
            this.getBlobData(data, this._compress, opts, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([this.dispatch, data, this._compress, opts, cb]);
        } else {
          this.dispatch(data, this._compress, opts, cb);
        }
      }
      /**
       * Gets the contents of a blob as binary data.
       *
       * @param {Blob} blob The blob
       * @param {Boolean} [compress=false] Specifies whether or not to compress
       *     the data
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @param {Function} [cb] Callback
       * @private
       */
      getBlobData(blob, compress, options, cb) {
        this._bufferedBytes += options[kByteLength];
        this._state = GET_BLOB_DATA;
        blob.arrayBuffer().then((arrayBuffer) => {
          if (this._socket.destroyed) {
            const err = new Error(
              "The socket was closed while the blob was being read"
            );
            process.nextTick(callCallbacks, this, err, cb);
            return;
          }
          this._bufferedBytes -= options[kByteLength];
          const data = toBuffer(arrayBuffer);
          if (!compress) {
            this._state = DEFAULT;
            this.sendFrame(_Sender.frame(data, options), cb);
            this.dequeue();
          } else {
            this.dispatch(data, compress, options, cb);
          }
        }).catch((err) => {
          process.nextTick(onError, this, err, cb);
        });
      }
      /**
       * Dispatches a message.
       *
       * @param {(Buffer|String)} data The message to send
       * @param {Boolean} [compress=false] Specifies whether or not to compress
       *     `data`
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @param {Function} [cb] Callback
       * @private
       */
      dispatch(data, compress, options, cb) {
        if (!compress) {
          this.sendFrame(_Sender.frame(data, options), cb);
          return;
        }
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        this._bufferedBytes += options[kByteLength];
        this._state = DEFLATING;
        perMessageDeflate.compress(data, options.fin, (_, buf) => {
          if (this._socket.destroyed) {
            const err = new Error(
              "The socket was closed while data was being compressed"
            );
            callCallbacks(this, err, cb);
            return;
          }
          this._bufferedBytes -= options[kByteLength];
          this._state = DEFAULT;
          options.readOnly = false;
          this.sendFrame(_Sender.frame(buf, options), cb);
          this.dequeue();
        });
      }
      /**
       * Executes queued send operations.
       *
       * @private
       */
      dequeue() {
        while (this._state === DEFAULT && this._queue.length) {
          const params = this._queue.shift();
          this._bufferedBytes -= params[3][kByteLength];
          Reflect.apply(params[0], this, params.slice(1));
        }
      }
      /**
       * Enqueues a send operation.
       *
       * @param {Array} params Send operation parameters.
       * @private
       */
      enqueue(params) {
        this._bufferedBytes += params[3][kByteLength];
        this._queue.push(params);
      }
      /**
       * Sends a frame.
       *
       * @param {(Buffer | String)[]} list The frame to send
       * @param {Function} [cb] Callback
       * @private
       */
      sendFrame(list, cb) {
        if (list.length === 2) {
          this._socket.cork();
          this._socket.write(list[0]);
          this._socket.write(list[1], cb);
          this._socket.uncork();
        } else {
          this._socket.write(list[0], cb);
        }
      }
    };
    module2.exports = Sender2;
    function callCallbacks(sender, err, cb) {
      if (typeof cb === "function") cb(err);
      for (let i = 0; i < sender._queue.length; i++) {
        const params = sender._queue[i];
        const callback = params[params.length - 1];
        if (typeof callback === "function") callback(err);
      }
    }
    function onError(sender, err, cb) {
      callCallbacks(sender, err, cb);
      sender.onerror(err);
    }
  }
});

// node_modules/ws/lib/event-target.js
var require_event_target = __commonJS({
  "node_modules/ws/lib/event-target.js"(exports2, module2) {
    "use strict";
    var { kForOnEventAttribute, kListener } = require_constants();
    var kCode = /* @__PURE__ */ Symbol("kCode");
    var kData = /* @__PURE__ */ Symbol("kData");
    var kError = /* @__PURE__ */ Symbol("kError");
    var kMessage = /* @__PURE__ */ Symbol("kMessage");
    var kReason = /* @__PURE__ */ Symbol("kReason");
    var kTarget = /* @__PURE__ */ Symbol("kTarget");
    var kType = /* @__PURE__ */ Symbol("kType");
    var kWasClean = /* @__PURE__ */ Symbol("kWasClean");
    var Event = class {
      /**
       * Create a new `Event`.
       *
       * @param {String} type The name of the event
       * @throws {TypeError} If the `type` argument is not specified
       */
      constructor(type) {
        this[kTarget] = null;
        this[kType] = type;
      }
      /**
       * @type {*}
       */
      get target() {
        return this[kTarget];
      }
      /**
       * @type {String}
       */
      get type() {
        return this[kType];
      }
    };
    Object.defineProperty(Event.prototype, "target", { enumerable: true });
    Object.defineProperty(Event.prototype, "type", { enumerable: true });
    var CloseEvent = class extends Event {
      /**
       * Create a new `CloseEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {Number} [options.code=0] The status code explaining why the
       *     connection was closed
       * @param {String} [options.reason=''] A human-readable string explaining why
       *     the connection was closed
       * @param {Boolean} [options.wasClean=false] Indicates whether or not the
       *     connection was cleanly closed
       */
      constructor(type, options = {}) {
        super(type);
        this[kCode] = options.code === void 0 ? 0 : options.code;
        this[kReason] = options.reason === void 0 ? "" : options.reason;
        this[kWasClean] = options.wasClean === void 0 ? false : options.wasClean;
      }
      /**
       * @type {Number}
       */
      get code() {
        return this[kCode];
      }
      /**
       * @type {String}
       */
      get reason() {
        return this[kReason];
      }
      /**
       * @type {Boolean}
       */
      get wasClean() {
        return this[kWasClean];
      }
    };
    Object.defineProperty(CloseEvent.prototype, "code", { enumerable: true });
    Object.defineProperty(CloseEvent.prototype, "reason", { enumerable: true });
    Object.defineProperty(CloseEvent.prototype, "wasClean", { enumerable: true });
    var ErrorEvent = class extends Event {
      /**
       * Create a new `ErrorEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {*} [options.error=null] The error that generated this event
       * @param {String} [options.message=''] The error message
       */
      constructor(type, options = {}) {
        super(type);
        this[kError] = options.error === void 0 ? null : options.error;
        this[kMessage] = options.message === void 0 ? "" : options.message;
      }
      /**
       * @type {*}
       */
      get error() {
        return this[kError];
      }
      /**
       * @type {String}
       */
      get message() {
        return this[kMessage];
      }
    };
    Object.defineProperty(ErrorEvent.prototype, "error", { enumerable: true });
    Object.defineProperty(ErrorEvent.prototype, "message", { enumerable: true });
    var MessageEvent = class extends Event {
      /**
       * Create a new `MessageEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {*} [options.data=null] The message content
       */
      constructor(type, options = {}) {
        super(type);
        this[kData] = options.data === void 0 ? null : options.data;
      }
      /**
       * @type {*}
       */
      get data() {
        return this[kData];
      }
    };
    Object.defineProperty(MessageEvent.prototype, "data", { enumerable: true });
    var EventTarget = {
      /**
       * Register an event listener.
       *
       * @param {String} type A string representing the event type to listen for
       * @param {(Function|Object)} handler The listener to add
       * @param {Object} [options] An options object specifies characteristics about
       *     the event listener
       * @param {Boolean} [options.once=false] A `Boolean` indicating that the
       *     listener should be invoked at most once after being added. If `true`,
       *     the listener would be automatically removed when invoked.
       * @public
       */
      addEventListener(type, handler, options = {}) {
        for (const listener of this.listeners(type)) {
          if (!options[kForOnEventAttribute] && listener[kListener] === handler && !listener[kForOnEventAttribute]) {
            return;
          }
        }
        let wrapper;
        if (type === "message") {
          wrapper = function onMessage(data, isBinary) {
            const event = new MessageEvent("message", {
              data: isBinary ? data : data.toString()
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "close") {
          wrapper = function onClose(code, message) {
            const event = new CloseEvent("close", {
              code,
              reason: message.toString(),
              wasClean: this._closeFrameReceived && this._closeFrameSent
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "error") {
          wrapper = function onError(error) {
            const event = new ErrorEvent("error", {
              error,
              message: error.message
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "open") {
          wrapper = function onOpen() {
            const event = new Event("open");
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else {
          return;
        }
        wrapper[kForOnEventAttribute] = !!options[kForOnEventAttribute];
        wrapper[kListener] = handler;
        if (options.once) {
          this.once(type, wrapper);
        } else {
          this.on(type, wrapper);
        }
      },
      /**
       * Remove an event listener.
       *
       * @param {String} type A string representing the event type to remove
       * @param {(Function|Object)} handler The listener to remove
       * @public
       */
      removeEventListener(type, handler) {
        for (const listener of this.listeners(type)) {
          if (listener[kListener] === handler && !listener[kForOnEventAttribute]) {
            this.removeListener(type, listener);
            break;
          }
        }
      }
    };
    module2.exports = {
      CloseEvent,
      ErrorEvent,
      Event,
      EventTarget,
      MessageEvent
    };
    function callListener(listener, thisArg, event) {
      if (typeof listener === "object" && listener.handleEvent) {
        listener.handleEvent.call(listener, event);
      } else {
        listener.call(thisArg, event);
      }
    }
  }
});

// node_modules/ws/lib/extension.js
var require_extension = __commonJS({
  "node_modules/ws/lib/extension.js"(exports2, module2) {
    "use strict";
    var { tokenChars } = require_validation();
    function push(dest, name, elem) {
      if (dest[name] === void 0) dest[name] = [elem];
      else dest[name].push(elem);
    }
    function parse(header) {
      const offers = /* @__PURE__ */ Object.create(null);
      let params = /* @__PURE__ */ Object.create(null);
      let mustUnescape = false;
      let isEscaping = false;
      let inQuotes = false;
      let extensionName;
      let paramName;
      let start = -1;
      let code = -1;
      let end = -1;
      let i = 0;
      for (; i < header.length; i++) {
        code = header.charCodeAt(i);
        if (extensionName === void 0) {
          if (end === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (i !== 0 && (code === 32 || code === 9)) {
            if (end === -1 && start !== -1) end = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end === -1) end = i;
            const name = header.slice(start, end);
            if (code === 44) {
              push(offers, name, params);
              params = /* @__PURE__ */ Object.create(null);
            } else {
              extensionName = name;
            }
            start = end = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        } else if (paramName === void 0) {
          if (end === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (code === 32 || code === 9) {
            if (end === -1 && start !== -1) end = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end === -1) end = i;
            push(params, header.slice(start, end), true);
            if (code === 44) {
              push(offers, extensionName, params);
              params = /* @__PURE__ */ Object.create(null);
              extensionName = void 0;
            }
            start = end = -1;
          } else if (code === 61 && start !== -1 && end === -1) {
            paramName = header.slice(start, i);
            start = end = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        } else {
          if (isEscaping) {
            if (tokenChars[code] !== 1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (start === -1) start = i;
            else if (!mustUnescape) mustUnescape = true;
            isEscaping = false;
          } else if (inQuotes) {
            if (tokenChars[code] === 1) {
              if (start === -1) start = i;
            } else if (code === 34 && start !== -1) {
              inQuotes = false;
              end = i;
            } else if (code === 92) {
              isEscaping = true;
            } else {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
          } else if (code === 34 && header.charCodeAt(i - 1) === 61) {
            inQuotes = true;
          } else if (end === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (start !== -1 && (code === 32 || code === 9)) {
            if (end === -1) end = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end === -1) end = i;
            let value = header.slice(start, end);
            if (mustUnescape) {
              value = value.replace(/\\/g, "");
              mustUnescape = false;
            }
            push(params, paramName, value);
            if (code === 44) {
              push(offers, extensionName, params);
              params = /* @__PURE__ */ Object.create(null);
              extensionName = void 0;
            }
            paramName = void 0;
            start = end = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        }
      }
      if (start === -1 || inQuotes || code === 32 || code === 9) {
        throw new SyntaxError("Unexpected end of input");
      }
      if (end === -1) end = i;
      const token = header.slice(start, end);
      if (extensionName === void 0) {
        push(offers, token, params);
      } else {
        if (paramName === void 0) {
          push(params, token, true);
        } else if (mustUnescape) {
          push(params, paramName, token.replace(/\\/g, ""));
        } else {
          push(params, paramName, token);
        }
        push(offers, extensionName, params);
      }
      return offers;
    }
    function format(extensions5) {
      return Object.keys(extensions5).map((extension2) => {
        let configurations = extensions5[extension2];
        if (!Array.isArray(configurations)) configurations = [configurations];
        return configurations.map((params) => {
          return [extension2].concat(
            Object.keys(params).map((k) => {
              let values = params[k];
              if (!Array.isArray(values)) values = [values];
              return values.map((v) => v === true ? k : `${k}=${v}`).join("; ");
            })
          ).join("; ");
        }).join(", ");
      }).join(", ");
    }
    module2.exports = { format, parse };
  }
});

// node_modules/ws/lib/websocket.js
var require_websocket = __commonJS({
  "node_modules/ws/lib/websocket.js"(exports2, module2) {
    "use strict";
    var EventEmitter11 = require("events");
    var https = require("https");
    var http = require("http");
    var net = require("net");
    var querystring = require("querystring");
    var tls = require("tls");
    var { randomBytes, createHash: createHash3 } = require("crypto");
    var { Duplex, Readable } = require("stream");
    var { URL } = require("url");
    var PerMessageDeflate2 = require_permessage_deflate();
    var Receiver2 = require_receiver();
    var Sender2 = require_sender();
    var { isBlob } = require_validation();
    var {
      BINARY_TYPES,
      CLOSE_TIMEOUT,
      EMPTY_BUFFER,
      GUID,
      kForOnEventAttribute,
      kListener,
      kStatusCode,
      kWebSocket,
      NOOP
    } = require_constants();
    var {
      EventTarget: { addEventListener, removeEventListener }
    } = require_event_target();
    var { format, parse } = require_extension();
    var { toBuffer } = require_buffer_util();
    var kAborted = /* @__PURE__ */ Symbol("kAborted");
    var protocolVersions = [8, 13];
    var readyStates = ["CONNECTING", "OPEN", "CLOSING", "CLOSED"];
    var subprotocolRegex = /^[!#$%&'*+\-.0-9A-Z^_`|a-z~]+$/;
    var WebSocket2 = class _WebSocket extends EventEmitter11 {
      /**
       * Create a new `WebSocket`.
       *
       * @param {(String|URL)} address The URL to which to connect
       * @param {(String|String[])} [protocols] The subprotocols
       * @param {Object} [options] Connection options
       */
      constructor(address, protocols, options) {
        super();
        this._binaryType = BINARY_TYPES[0];
        this._closeCode = 1006;
        this._closeFrameReceived = false;
        this._closeFrameSent = false;
        this._closeMessage = EMPTY_BUFFER;
        this._closeTimer = null;
        this._errorEmitted = false;
        this._extensions = {};
        this._paused = false;
        this._protocol = "";
        this._readyState = _WebSocket.CONNECTING;
        this._receiver = null;
        this._sender = null;
        this._socket = null;
        if (address !== null) {
          this._bufferedAmount = 0;
          this._isServer = false;
          this._redirects = 0;
          if (protocols === void 0) {
            if (!options || options.protocols === void 0) {
              protocols = [];
            } else if (Array.isArray(options.protocols)) {
              protocols = options.protocols;
            } else {
              protocols = [options.protocols];
            }
          } else if (!Array.isArray(protocols)) {
            if (typeof protocols === "object" && protocols !== null) {
              options = protocols;
              if (options.protocols === void 0) {
                protocols = [];
              } else if (Array.isArray(options.protocols)) {
                protocols = options.protocols;
              } else {
                protocols = [options.protocols];
              }
            } else {
              protocols = [protocols];
            }
          }
          initAsClient(this, address, protocols, options);
        } else {
          this._autoPong = options.autoPong;
          this._closeTimeout = options.closeTimeout;
          this._isServer = true;
        }
      }
      /**
       * For historical reasons, the custom "nodebuffer" type is used by the default
       * instead of "blob".
       *
       * @type {String}
       */
      get binaryType() {
        return this._binaryType;
      }
      set binaryType(type) {
        if (!BINARY_TYPES.includes(type)) return;
        this._binaryType = type;
        if (this._receiver) this._receiver._binaryType = type;
      }
      /**
       * @type {Number}
       */
      get bufferedAmount() {
        if (!this._socket) return this._bufferedAmount;
        return this._socket._writableState.length + this._sender._bufferedBytes;
      }
      /**
       * @type {String}
       */
      get extensions() {
        return Object.keys(this._extensions).join();
      }
      /**
       * @type {Boolean}
       */
      get isPaused() {
        return this._paused;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onclose() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onerror() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onopen() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onmessage() {
        return null;
      }
      /**
       * @type {String}
       */
      get protocol() {
        return this._protocol;
      }
      /**
       * @type {Number}
       */
      get readyState() {
        return this._readyState;
      }
      /**
       * @type {String}
       */
      get url() {
        return this._url;
      }
      /**
       * Set up the socket and the internal resources.
       *
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Object} options Options object
       * @param {Boolean} [options.allowSynchronousEvents=false] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Number} [options.maxBufferedChunks=0] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=0] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=0] The maximum allowed message size
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       * @private
       */
      setSocket(socket, head, options) {
        const receiver = new Receiver2({
          allowSynchronousEvents: options.allowSynchronousEvents,
          binaryType: this.binaryType,
          extensions: this._extensions,
          isServer: this._isServer,
          maxBufferedChunks: options.maxBufferedChunks,
          maxFragments: options.maxFragments,
          maxPayload: options.maxPayload,
          skipUTF8Validation: options.skipUTF8Validation
        });
        const sender = new Sender2(socket, this._extensions, options.generateMask);
        this._receiver = receiver;
        this._sender = sender;
        this._socket = socket;
        receiver[kWebSocket] = this;
        sender[kWebSocket] = this;
        socket[kWebSocket] = this;
        receiver.on("conclude", receiverOnConclude);
        receiver.on("drain", receiverOnDrain);
        receiver.on("error", receiverOnError);
        receiver.on("message", receiverOnMessage);
        receiver.on("ping", receiverOnPing);
        receiver.on("pong", receiverOnPong);
        sender.onerror = senderOnError;
        if (socket.setTimeout) socket.setTimeout(0);
        if (socket.setNoDelay) socket.setNoDelay();
        if (head.length > 0) socket.unshift(head);
        socket.on("close", socketOnClose);
        socket.on("data", socketOnData);
        socket.on("end", socketOnEnd);
        socket.on("error", socketOnError);
        this._readyState = _WebSocket.OPEN;
        this.emit("open");
      }
      /**
       * Emit the `'close'` event.
       *
       * @private
       */
      emitClose() {
        if (!this._socket) {
          this._readyState = _WebSocket.CLOSED;
          this.emit("close", this._closeCode, this._closeMessage);
          return;
        }
        if (this._extensions[PerMessageDeflate2.extensionName]) {
          this._extensions[PerMessageDeflate2.extensionName].cleanup();
        }
        this._receiver.removeAllListeners();
        this._readyState = _WebSocket.CLOSED;
        this.emit("close", this._closeCode, this._closeMessage);
      }
      /**
       * Start a closing handshake.
       *
       *          +----------+   +-----------+   +----------+
       *     - - -|ws.close()|-->|close frame|-->|ws.close()|- - -
       *    |     +----------+   +-----------+   +----------+     |
       *          +----------+   +-----------+         |
       * CLOSING  |ws.close()|<--|close frame|<--+-----+       CLOSING
       *          +----------+   +-----------+   |
       *    |           |                        |   +---+        |
       *                +------------------------+-->|fin| - - - -
       *    |         +---+                      |   +---+
       *     - - - - -|fin|<---------------------+
       *              +---+
       *
       * @param {Number} [code] Status code explaining why the connection is closing
       * @param {(String|Buffer)} [data] The reason why the connection is
       *     closing
       * @public
       */
      close(code, data) {
        if (this.readyState === _WebSocket.CLOSED) return;
        if (this.readyState === _WebSocket.CONNECTING) {
          const msg = "WebSocket was closed before the connection was established";
          abortHandshake(this, this._req, msg);
          return;
        }
        if (this.readyState === _WebSocket.CLOSING) {
          if (this._closeFrameSent && (this._closeFrameReceived || this._receiver._writableState.errorEmitted)) {
            this._socket.end();
          }
          return;
        }
        this._sender.close(code, data, !this._isServer, (err) => {
          if (err) return;
          this._closeFrameSent = true;
          if (this._closeFrameReceived || this._receiver._writableState.errorEmitted) {
            this._socket.end();
          }
        });
        this._readyState = _WebSocket.CLOSING;
        setCloseTimer(this);
      }
      /**
       * Pause the socket.
       *
       * @public
       */
      pause() {
        if (this.readyState === _WebSocket.CONNECTING || this.readyState === _WebSocket.CLOSED) {
          return;
        }
        this._paused = true;
        this._socket.pause();
      }
      /**
       * Send a ping.
       *
       * @param {*} [data] The data to send
       * @param {Boolean} [mask] Indicates whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when the ping is sent
       * @public
       */
      ping(data, mask, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof data === "function") {
          cb = data;
          data = mask = void 0;
        } else if (typeof mask === "function") {
          cb = mask;
          mask = void 0;
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        if (mask === void 0) mask = !this._isServer;
        this._sender.ping(data || EMPTY_BUFFER, mask, cb);
      }
      /**
       * Send a pong.
       *
       * @param {*} [data] The data to send
       * @param {Boolean} [mask] Indicates whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when the pong is sent
       * @public
       */
      pong(data, mask, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof data === "function") {
          cb = data;
          data = mask = void 0;
        } else if (typeof mask === "function") {
          cb = mask;
          mask = void 0;
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        if (mask === void 0) mask = !this._isServer;
        this._sender.pong(data || EMPTY_BUFFER, mask, cb);
      }
      /**
       * Resume the socket.
       *
       * @public
       */
      resume() {
        if (this.readyState === _WebSocket.CONNECTING || this.readyState === _WebSocket.CLOSED) {
          return;
        }
        this._paused = false;
        if (!this._receiver._writableState.needDrain) this._socket.resume();
      }
      /**
       * Send a data message.
       *
       * @param {*} data The message to send
       * @param {Object} [options] Options object
       * @param {Boolean} [options.binary] Specifies whether `data` is binary or
       *     text
       * @param {Boolean} [options.compress] Specifies whether or not to compress
       *     `data`
       * @param {Boolean} [options.fin=true] Specifies whether the fragment is the
       *     last one
       * @param {Boolean} [options.mask] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when data is written out
       * @public
       */
      send(data, options, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof options === "function") {
          cb = options;
          options = {};
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        const opts = {
          binary: typeof data !== "string",
          mask: !this._isServer,
          compress: true,
          fin: true,
          ...options
        };
        if (!this._extensions[PerMessageDeflate2.extensionName]) {
          opts.compress = false;
        }
        this._sender.send(data || EMPTY_BUFFER, opts, cb);
      }
      /**
       * Forcibly close the connection.
       *
       * @public
       */
      terminate() {
        if (this.readyState === _WebSocket.CLOSED) return;
        if (this.readyState === _WebSocket.CONNECTING) {
          const msg = "WebSocket was closed before the connection was established";
          abortHandshake(this, this._req, msg);
          return;
        }
        if (this._socket) {
          this._readyState = _WebSocket.CLOSING;
          this._socket.destroy();
        }
      }
    };
    Object.defineProperty(WebSocket2, "CONNECTING", {
      enumerable: true,
      value: readyStates.indexOf("CONNECTING")
    });
    Object.defineProperty(WebSocket2.prototype, "CONNECTING", {
      enumerable: true,
      value: readyStates.indexOf("CONNECTING")
    });
    Object.defineProperty(WebSocket2, "OPEN", {
      enumerable: true,
      value: readyStates.indexOf("OPEN")
    });
    Object.defineProperty(WebSocket2.prototype, "OPEN", {
      enumerable: true,
      value: readyStates.indexOf("OPEN")
    });
    Object.defineProperty(WebSocket2, "CLOSING", {
      enumerable: true,
      value: readyStates.indexOf("CLOSING")
    });
    Object.defineProperty(WebSocket2.prototype, "CLOSING", {
      enumerable: true,
      value: readyStates.indexOf("CLOSING")
    });
    Object.defineProperty(WebSocket2, "CLOSED", {
      enumerable: true,
      value: readyStates.indexOf("CLOSED")
    });
    Object.defineProperty(WebSocket2.prototype, "CLOSED", {
      enumerable: true,
      value: readyStates.indexOf("CLOSED")
    });
    [
      "binaryType",
      "bufferedAmount",
      "extensions",
      "isPaused",
      "protocol",
      "readyState",
      "url"
    ].forEach((property) => {
      Object.defineProperty(WebSocket2.prototype, property, { enumerable: true });
    });
    ["open", "error", "close", "message"].forEach((method) => {
      Object.defineProperty(WebSocket2.prototype, `on${method}`, {
        enumerable: true,
        get() {
          for (const listener of this.listeners(method)) {
            if (listener[kForOnEventAttribute]) return listener[kListener];
          }
          return null;
        },
        set(handler) {
          for (const listener of this.listeners(method)) {
            if (listener[kForOnEventAttribute]) {
              this.removeListener(method, listener);
              break;
            }
          }
          if (typeof handler !== "function") return;
          this.addEventListener(method, handler, {
            [kForOnEventAttribute]: true
          });
        }
      });
    });
    WebSocket2.prototype.addEventListener = addEventListener;
    WebSocket2.prototype.removeEventListener = removeEventListener;
    module2.exports = WebSocket2;
    function initAsClient(websocket, address, protocols, options) {
      const opts = {
        allowSynchronousEvents: true,
        autoPong: true,
        closeTimeout: CLOSE_TIMEOUT,
        protocolVersion: protocolVersions[1],
        maxBufferedChunks: 256 * 1024,
        maxFragments: 16 * 1024,
        maxPayload: 100 * 1024 * 1024,
        skipUTF8Validation: false,
        perMessageDeflate: true,
        followRedirects: false,
        maxRedirects: 10,
        ...options,
        socketPath: void 0,
        hostname: void 0,
        protocol: void 0,
        protocols: void 0,
        timeout: void 0,
        method: "GET",
        host: void 0,
        path: void 0,
        port: void 0
      };
      websocket._autoPong = opts.autoPong;
      websocket._closeTimeout = opts.closeTimeout;
      if (!protocolVersions.includes(opts.protocolVersion)) {
        throw new RangeError(
          `Unsupported protocol version: ${opts.protocolVersion} (supported versions: ${protocolVersions.join(", ")})`
        );
      }
      let parsedUrl;
      if (address instanceof URL) {
        parsedUrl = address;
      } else {
        try {
          parsedUrl = new URL(address);
        } catch {
          throw new SyntaxError(`Invalid URL: ${address}`);
        }
      }
      if (parsedUrl.protocol === "http:" || parsedUrl.protocol === "https:") {
        parsedUrl = new URL(parsedUrl);
        parsedUrl.protocol = parsedUrl.protocol === "http:" ? "ws:" : "wss:";
      }
      websocket._url = parsedUrl.href;
      const isSecure = parsedUrl.protocol === "wss:";
      const isIpcUrl = parsedUrl.protocol === "ws+unix:";
      let invalidUrlMessage;
      if (parsedUrl.protocol !== "ws:" && !isSecure && !isIpcUrl) {
        invalidUrlMessage = `The URL's protocol must be one of "ws:", "wss:", "http:", "https:", or "ws+unix:"`;
      } else if (isIpcUrl && !parsedUrl.pathname) {
        invalidUrlMessage = "The URL's pathname is empty";
      } else if (parsedUrl.hash) {
        invalidUrlMessage = "The URL contains a fragment identifier";
      }
      if (invalidUrlMessage) {
        const err = new SyntaxError(invalidUrlMessage);
        if (websocket._redirects === 0) {
          throw err;
        } else {
          emitErrorAndClose(websocket, err);
          return;
        }
      }
      const defaultPort = isSecure ? 443 : 80;
      const key = randomBytes(16).toString("base64");
      const request2 = isSecure ? https.request : http.request;
      const protocolSet = /* @__PURE__ */ new Set();
      let perMessageDeflate;
      opts.createConnection = opts.createConnection || (isSecure ? tlsConnect : netConnect);
      opts.defaultPort = opts.defaultPort || defaultPort;
      opts.port = parsedUrl.port || defaultPort;
      opts.host = parsedUrl.hostname.startsWith("[") ? parsedUrl.hostname.slice(1, -1) : parsedUrl.hostname;
      opts.headers = {
        ...opts.headers,
        "Sec-WebSocket-Version": opts.protocolVersion,
        "Sec-WebSocket-Key": key,
        Connection: "Upgrade",
        Upgrade: "websocket"
      };
      opts.path = parsedUrl.pathname + parsedUrl.search;
      opts.timeout = opts.handshakeTimeout;
      if (opts.perMessageDeflate) {
        perMessageDeflate = new PerMessageDeflate2({
          ...opts.perMessageDeflate,
          isServer: false,
          maxPayload: opts.maxPayload
        });
        opts.headers["Sec-WebSocket-Extensions"] = format({
          [PerMessageDeflate2.extensionName]: perMessageDeflate.offer()
        });
      }
      if (protocols.length) {
        for (const protocol of protocols) {
          if (typeof protocol !== "string" || !subprotocolRegex.test(protocol) || protocolSet.has(protocol)) {
            throw new SyntaxError(
              "An invalid or duplicated subprotocol was specified"
            );
          }
          protocolSet.add(protocol);
        }
        opts.headers["Sec-WebSocket-Protocol"] = protocols.join(",");
      }
      if (opts.origin) {
        if (opts.protocolVersion < 13) {
          opts.headers["Sec-WebSocket-Origin"] = opts.origin;
        } else {
          opts.headers.Origin = opts.origin;
        }
      }
      if (parsedUrl.username || parsedUrl.password) {
        const username = querystring.unescape(parsedUrl.username);
        const password = querystring.unescape(parsedUrl.password);
        opts.auth = `${username}:${password}`;
      }
      if (isIpcUrl) {
        const i = opts.path.indexOf(":");
        if (i === -1) {
          opts.socketPath = opts.path;
          opts.path = "";
        } else {
          opts.socketPath = opts.path.slice(0, i);
          opts.path = opts.path.slice(i + 1);
        }
      }
      let req;
      if (opts.followRedirects) {
        if (websocket._redirects === 0) {
          websocket._originalIpc = isIpcUrl;
          websocket._originalSecure = isSecure;
          websocket._originalHostOrSocketPath = isIpcUrl ? opts.socketPath : parsedUrl.host;
          const headers = options && options.headers;
          options = { ...options, headers: {} };
          if (headers) {
            for (const [key2, value] of Object.entries(headers)) {
              options.headers[key2.toLowerCase()] = value;
            }
          }
        } else if (websocket.listenerCount("redirect") === 0) {
          const isSameHost = isIpcUrl ? websocket._originalIpc ? opts.socketPath === websocket._originalHostOrSocketPath : false : websocket._originalIpc ? false : parsedUrl.host === websocket._originalHostOrSocketPath;
          if (!isSameHost || websocket._originalSecure && !isSecure) {
            delete opts.headers.authorization;
            delete opts.headers.cookie;
            if (!isSameHost) delete opts.headers.host;
            opts.auth = void 0;
          }
        }
        if (opts.auth && !options.headers.authorization) {
          options.headers.authorization = "Basic " + Buffer.from(opts.auth).toString("base64");
        }
        req = websocket._req = request2(opts);
        if (websocket._redirects) {
          websocket.emit("redirect", websocket.url, req);
        }
      } else {
        req = websocket._req = request2(opts);
      }
      if (opts.timeout) {
        req.on("timeout", () => {
          abortHandshake(websocket, req, "Opening handshake has timed out");
        });
      }
      req.on("error", (err) => {
        if (req === null || req[kAborted]) return;
        req = websocket._req = null;
        emitErrorAndClose(websocket, err);
      });
      req.on("response", (res) => {
        const location = res.headers.location;
        const statusCode = res.statusCode;
        if (location && opts.followRedirects && statusCode >= 300 && statusCode < 400) {
          if (++websocket._redirects > opts.maxRedirects) {
            abortHandshake(websocket, req, "Maximum redirects exceeded");
            return;
          }
          req.abort();
          let addr;
          try {
            addr = new URL(location, address);
          } catch (e) {
            const err = new SyntaxError(`Invalid URL: ${location}`);
            emitErrorAndClose(websocket, err);
            return;
          }
          initAsClient(websocket, addr, protocols, options);
        } else if (!websocket.emit("unexpected-response", req, res)) {
          abortHandshake(
            websocket,
            req,
            `Unexpected server response: ${res.statusCode}`
          );
        }
      });
      req.on("upgrade", (res, socket, head) => {
        websocket.emit("upgrade", res);
        if (websocket.readyState !== WebSocket2.CONNECTING) return;
        req = websocket._req = null;
        const upgrade = res.headers.upgrade;
        if (upgrade === void 0 || upgrade.toLowerCase() !== "websocket") {
          abortHandshake(websocket, socket, "Invalid Upgrade header");
          return;
        }
        const digest = createHash3("sha1").update(key + GUID).digest("base64");
        if (res.headers["sec-websocket-accept"] !== digest) {
          abortHandshake(websocket, socket, "Invalid Sec-WebSocket-Accept header");
          return;
        }
        const serverProt = res.headers["sec-websocket-protocol"];
        let protError;
        if (serverProt !== void 0) {
          if (!protocolSet.size) {
            protError = "Server sent a subprotocol but none was requested";
          } else if (!protocolSet.has(serverProt)) {
            protError = "Server sent an invalid subprotocol";
          }
        } else if (protocolSet.size) {
          protError = "Server sent no subprotocol";
        }
        if (protError) {
          abortHandshake(websocket, socket, protError);
          return;
        }
        if (serverProt) websocket._protocol = serverProt;
        const secWebSocketExtensions = res.headers["sec-websocket-extensions"];
        if (secWebSocketExtensions !== void 0) {
          if (!perMessageDeflate) {
            const message = "Server sent a Sec-WebSocket-Extensions header but no extension was requested";
            abortHandshake(websocket, socket, message);
            return;
          }
          let extensions5;
          try {
            extensions5 = parse(secWebSocketExtensions);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Extensions header";
            abortHandshake(websocket, socket, message);
            return;
          }
          const extensionNames = Object.keys(extensions5);
          if (extensionNames.length !== 1 || extensionNames[0] !== PerMessageDeflate2.extensionName) {
            const message = "Server indicated an extension that was not requested";
            abortHandshake(websocket, socket, message);
            return;
          }
          try {
            perMessageDeflate.accept(extensions5[PerMessageDeflate2.extensionName]);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Extensions header";
            abortHandshake(websocket, socket, message);
            return;
          }
          websocket._extensions[PerMessageDeflate2.extensionName] = perMessageDeflate;
        }
        websocket.setSocket(socket, head, {
          allowSynchronousEvents: opts.allowSynchronousEvents,
          generateMask: opts.generateMask,
          maxBufferedChunks: opts.maxBufferedChunks,
          maxFragments: opts.maxFragments,
          maxPayload: opts.maxPayload,
          skipUTF8Validation: opts.skipUTF8Validation
        });
      });
      if (opts.finishRequest) {
        opts.finishRequest(req, websocket);
      } else {
        req.end();
      }
    }
    function emitErrorAndClose(websocket, err) {
      websocket._readyState = WebSocket2.CLOSING;
      websocket._errorEmitted = true;
      websocket.emit("error", err);
      websocket.emitClose();
    }
    function netConnect(options) {
      options.path = options.socketPath;
      return net.connect(options);
    }
    function tlsConnect(options) {
      options.path = void 0;
      if (!options.servername && options.servername !== "") {
        options.servername = net.isIP(options.host) ? "" : options.host;
      }
      return tls.connect(options);
    }
    function abortHandshake(websocket, stream, message) {
      websocket._readyState = WebSocket2.CLOSING;
      const err = new Error(message);
      Error.captureStackTrace(err, abortHandshake);
      if (stream.setHeader) {
        stream[kAborted] = true;
        stream.abort();
        if (stream.socket && !stream.socket.destroyed) {
          stream.socket.destroy();
        }
        process.nextTick(emitErrorAndClose, websocket, err);
      } else {
        stream.destroy(err);
        stream.once("error", websocket.emit.bind(websocket, "error"));
        stream.once("close", websocket.emitClose.bind(websocket));
      }
    }
    function sendAfterClose(websocket, data, cb) {
      if (data) {
        const length = isBlob(data) ? data.size : toBuffer(data).length;
        if (websocket._socket) websocket._sender._bufferedBytes += length;
        else websocket._bufferedAmount += length;
      }
      if (cb) {
        const err = new Error(
          `WebSocket is not open: readyState ${websocket.readyState} (${readyStates[websocket.readyState]})`
        );
        process.nextTick(cb, err);
      }
    }
    function receiverOnConclude(code, reason) {
      const websocket = this[kWebSocket];
      websocket._closeFrameReceived = true;
      websocket._closeCode = code;
      if (reason.length === 0) {
        websocket._closeMessage = EMPTY_BUFFER;
      } else {
        websocket._closeMessage = Buffer.allocUnsafeSlow(reason.length);
        websocket._closeMessage.set(reason);
      }
      if (websocket._socket[kWebSocket] === void 0) return;
      websocket._socket.removeListener("data", socketOnData);
      process.nextTick(resume, websocket._socket);
      if (code === 1005) websocket.close();
      else websocket.close(code, reason);
    }
    function receiverOnDrain() {
      const websocket = this[kWebSocket];
      if (!websocket.isPaused) websocket._socket.resume();
    }
    function receiverOnError(err) {
      const websocket = this[kWebSocket];
      if (websocket._socket[kWebSocket] !== void 0) {
        websocket._socket.removeListener("data", socketOnData);
        process.nextTick(resume, websocket._socket);
        websocket.close(err[kStatusCode]);
      }
      if (!websocket._errorEmitted) {
        websocket._errorEmitted = true;
        websocket.emit("error", err);
      }
    }
    function receiverOnFinish() {
      this[kWebSocket].emitClose();
    }
    function receiverOnMessage(data, isBinary) {
      this[kWebSocket].emit("message", data, isBinary);
    }
    function receiverOnPing(data) {
      const websocket = this[kWebSocket];
      if (websocket._autoPong) websocket.pong(data, !this._isServer, NOOP);
      websocket.emit("ping", data);
    }
    function receiverOnPong(data) {
      this[kWebSocket].emit("pong", data);
    }
    function resume(stream) {
      stream.resume();
    }
    function senderOnError(err) {
      const websocket = this[kWebSocket];
      if (websocket.readyState === WebSocket2.CLOSED) return;
      if (websocket.readyState === WebSocket2.OPEN) {
        websocket._readyState = WebSocket2.CLOSING;
        setCloseTimer(websocket);
      }
      this._socket.end();
      if (!websocket._errorEmitted) {
        websocket._errorEmitted = true;
        websocket.emit("error", err);
      }
    }
    function setCloseTimer(websocket) {
      websocket._closeTimer = setTimeout(
        websocket._socket.destroy.bind(websocket._socket),
        websocket._closeTimeout
      );
    }
    function socketOnClose() {
      const websocket = this[kWebSocket];
      this.removeListener("close", socketOnClose);
      this.removeListener("data", socketOnData);
      this.removeListener("end", socketOnEnd);
      websocket._readyState = WebSocket2.CLOSING;
      if (!this._readableState.endEmitted && !websocket._closeFrameReceived && !websocket._receiver._writableState.errorEmitted && this._readableState.length !== 0) {
        const chunk = this.read(this._readableState.length);
        websocket._receiver.write(chunk);
      }
      websocket._receiver.end();
      this[kWebSocket] = void 0;
      clearTimeout(websocket._closeTimer);
      if (websocket._receiver._writableState.finished || websocket._receiver._writableState.errorEmitted) {
        websocket.emitClose();
      } else {
        websocket._receiver.on("error", receiverOnFinish);
        websocket._receiver.on("finish", receiverOnFinish);
      }
    }
    function socketOnData(chunk) {
      if (!this[kWebSocket]._receiver.write(chunk)) {
        this.pause();
      }
    }
    function socketOnEnd() {
      const websocket = this[kWebSocket];
      websocket._readyState = WebSocket2.CLOSING;
      websocket._receiver.end();
      this.end();
    }
    function socketOnError() {
      const websocket = this[kWebSocket];
      this.removeListener("error", socketOnError);
      this.on("error", NOOP);
      if (websocket) {
        websocket._readyState = WebSocket2.CLOSING;
        this.destroy();
      }
    }
  }
});

// node_modules/ws/lib/stream.js
var require_stream = __commonJS({
  "node_modules/ws/lib/stream.js"(exports2, module2) {
    "use strict";
    var WebSocket2 = require_websocket();
    var { Duplex } = require("stream");
    function emitClose(stream) {
      stream.emit("close");
    }
    function duplexOnEnd() {
      if (!this.destroyed && this._writableState.finished) {
        this.destroy();
      }
    }
    function duplexOnError(err) {
      this.removeListener("error", duplexOnError);
      this.destroy();
      if (this.listenerCount("error") === 0) {
        this.emit("error", err);
      }
    }
    function createWebSocketStream2(ws, options) {
      let terminateOnDestroy = true;
      const duplex = new Duplex({
        ...options,
        autoDestroy: false,
        emitClose: false,
        objectMode: false,
        writableObjectMode: false
      });
      ws.on("message", function message(msg, isBinary) {
        const data = !isBinary && duplex._readableState.objectMode ? msg.toString() : msg;
        if (!duplex.push(data)) ws.pause();
      });
      ws.once("error", function error(err) {
        if (duplex.destroyed) return;
        terminateOnDestroy = false;
        duplex.destroy(err);
      });
      ws.once("close", function close2() {
        if (duplex.destroyed) return;
        duplex.push(null);
      });
      duplex._destroy = function(err, callback) {
        if (ws.readyState === ws.CLOSED) {
          callback(err);
          process.nextTick(emitClose, duplex);
          return;
        }
        let called = false;
        ws.once("error", function error(err2) {
          called = true;
          callback(err2);
        });
        ws.once("close", function close2() {
          if (!called) callback(err);
          process.nextTick(emitClose, duplex);
        });
        if (terminateOnDestroy) ws.terminate();
      };
      duplex._final = function(callback) {
        if (ws.readyState === ws.CONNECTING) {
          ws.once("open", function open() {
            duplex._final(callback);
          });
          return;
        }
        if (ws._socket === null) return;
        if (ws._socket._writableState.finished) {
          callback();
          if (duplex._readableState.endEmitted) duplex.destroy();
        } else {
          ws._socket.once("finish", function finish() {
            callback();
          });
          ws.close();
        }
      };
      duplex._read = function() {
        if (ws.isPaused) ws.resume();
      };
      duplex._write = function(chunk, encoding, callback) {
        if (ws.readyState === ws.CONNECTING) {
          ws.once("open", function open() {
            duplex._write(chunk, encoding, callback);
          });
          return;
        }
        ws.send(chunk, callback);
      };
      duplex.on("end", duplexOnEnd);
      duplex.on("error", duplexOnError);
      return duplex;
    }
    module2.exports = createWebSocketStream2;
  }
});

// node_modules/ws/lib/subprotocol.js
var require_subprotocol = __commonJS({
  "node_modules/ws/lib/subprotocol.js"(exports2, module2) {
    "use strict";
    var { tokenChars } = require_validation();
    function parse(header) {
      const protocols = /* @__PURE__ */ new Set();
      let start = -1;
      let end = -1;
      let i = 0;
      for (i; i < header.length; i++) {
        const code = header.charCodeAt(i);
        if (end === -1 && tokenChars[code] === 1) {
          if (start === -1) start = i;
        } else if (i !== 0 && (code === 32 || code === 9)) {
          if (end === -1 && start !== -1) end = i;
        } else if (code === 44) {
          if (start === -1) {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
          if (end === -1) end = i;
          const protocol2 = header.slice(start, end);
          if (protocols.has(protocol2)) {
            throw new SyntaxError(`The "${protocol2}" subprotocol is duplicated`);
          }
          protocols.add(protocol2);
          start = end = -1;
        } else {
          throw new SyntaxError(`Unexpected character at index ${i}`);
        }
      }
      if (start === -1 || end !== -1) {
        throw new SyntaxError("Unexpected end of input");
      }
      const protocol = header.slice(start, i);
      if (protocols.has(protocol)) {
        throw new SyntaxError(`The "${protocol}" subprotocol is duplicated`);
      }
      protocols.add(protocol);
      return protocols;
    }
    module2.exports = { parse };
  }
});

// node_modules/ws/lib/websocket-server.js
var require_websocket_server = __commonJS({
  "node_modules/ws/lib/websocket-server.js"(exports2, module2) {
    "use strict";
    var EventEmitter11 = require("events");
    var http = require("http");
    var { Duplex } = require("stream");
    var { createHash: createHash3 } = require("crypto");
    var extension2 = require_extension();
    var PerMessageDeflate2 = require_permessage_deflate();
    var subprotocol2 = require_subprotocol();
    var WebSocket2 = require_websocket();
    var { CLOSE_TIMEOUT, GUID, kWebSocket } = require_constants();
    var keyRegex = /^[+/0-9A-Za-z]{22}==$/;
    var RUNNING = 0;
    var CLOSING = 1;
    var CLOSED = 2;
    var WebSocketServer2 = class extends EventEmitter11 {
      /**
       * Create a `WebSocketServer` instance.
       *
       * @param {Object} options Configuration options
       * @param {Boolean} [options.allowSynchronousEvents=true] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {Boolean} [options.autoPong=true] Specifies whether or not to
       *     automatically send a pong in response to a ping
       * @param {Number} [options.backlog=511] The maximum length of the queue of
       *     pending connections
       * @param {Boolean} [options.clientTracking=true] Specifies whether or not to
       *     track clients
       * @param {Number} [options.closeTimeout=30000] Duration in milliseconds to
       *     wait for the closing handshake to finish after `websocket.close()` is
       *     called
       * @param {Function} [options.handleProtocols] A hook to handle protocols
       * @param {String} [options.host] The hostname where to bind the server
       * @param {Number} [options.maxBufferedChunks=262144] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=16384] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=104857600] The maximum allowed message
       *     size
       * @param {Boolean} [options.noServer=false] Enable no server mode
       * @param {String} [options.path] Accept only connections matching this path
       * @param {(Boolean|Object)} [options.perMessageDeflate=false] Enable/disable
       *     permessage-deflate
       * @param {Number} [options.port] The port where to bind the server
       * @param {(http.Server|https.Server)} [options.server] A pre-created HTTP/S
       *     server to use
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       * @param {Function} [options.verifyClient] A hook to reject connections
       * @param {Function} [options.WebSocket=WebSocket] Specifies the `WebSocket`
       *     class to use. It must be the `WebSocket` class or class that extends it
       * @param {Function} [callback] A listener for the `listening` event
       */
      constructor(options, callback) {
        super();
        options = {
          allowSynchronousEvents: true,
          autoPong: true,
          maxBufferedChunks: 256 * 1024,
          maxFragments: 16 * 1024,
          maxPayload: 100 * 1024 * 1024,
          skipUTF8Validation: false,
          perMessageDeflate: false,
          handleProtocols: null,
          clientTracking: true,
          closeTimeout: CLOSE_TIMEOUT,
          verifyClient: null,
          noServer: false,
          backlog: null,
          // use default (511 as implemented in net.js)
          server: null,
          host: null,
          path: null,
          port: null,
          WebSocket: WebSocket2,
          ...options
        };
        if (options.port == null && !options.server && !options.noServer || options.port != null && (options.server || options.noServer) || options.server && options.noServer) {
          throw new TypeError(
            'One and only one of the "port", "server", or "noServer" options must be specified'
          );
        }
        if (options.port != null) {
          this._server = http.createServer((req, res) => {
            const body = http.STATUS_CODES[426];
            res.writeHead(426, {
              "Content-Length": body.length,
              "Content-Type": "text/plain"
            });
            res.end(body);
          });
          this._server.listen(
            options.port,
            options.host,
            options.backlog,
            callback
          );
        } else if (options.server) {
          this._server = options.server;
        }
        if (this._server) {
          const emitConnection = this.emit.bind(this, "connection");
          this._removeListeners = addListeners(this._server, {
            listening: this.emit.bind(this, "listening"),
            error: this.emit.bind(this, "error"),
            upgrade: (req, socket, head) => {
              this.handleUpgrade(req, socket, head, emitConnection);
            }
          });
        }
        if (options.perMessageDeflate === true) options.perMessageDeflate = {};
        if (options.clientTracking) {
          this.clients = /* @__PURE__ */ new Set();
          this._shouldEmitClose = false;
        }
        this.options = options;
        this._state = RUNNING;
      }
      /**
       * Returns the bound address, the address family name, and port of the server
       * as reported by the operating system if listening on an IP socket.
       * If the server is listening on a pipe or UNIX domain socket, the name is
       * returned as a string.
       *
       * @return {(Object|String|null)} The address of the server
       * @public
       */
      address() {
        if (this.options.noServer) {
          throw new Error('The server is operating in "noServer" mode');
        }
        if (!this._server) return null;
        return this._server.address();
      }
      /**
       * Stop the server from accepting new connections and emit the `'close'` event
       * when all existing connections are closed.
       *
       * @param {Function} [cb] A one-time listener for the `'close'` event
       * @public
       */
      close(cb) {
        if (this._state === CLOSED) {
          if (cb) {
            this.once("close", () => {
              cb(new Error("The server is not running"));
            });
          }
          process.nextTick(emitClose, this);
          return;
        }
        if (cb) this.once("close", cb);
        if (this._state === CLOSING) return;
        this._state = CLOSING;
        if (this.options.noServer || this.options.server) {
          if (this._server) {
            this._removeListeners();
            this._removeListeners = this._server = null;
          }
          if (this.clients) {
            if (!this.clients.size) {
              process.nextTick(emitClose, this);
            } else {
              this._shouldEmitClose = true;
            }
          } else {
            process.nextTick(emitClose, this);
          }
        } else {
          const server = this._server;
          this._removeListeners();
          this._removeListeners = this._server = null;
          server.close(() => {
            emitClose(this);
          });
        }
      }
      /**
       * See if a given request should be handled by this server instance.
       *
       * @param {http.IncomingMessage} req Request object to inspect
       * @return {Boolean} `true` if the request is valid, else `false`
       * @public
       */
      shouldHandle(req) {
        if (this.options.path) {
          const index = req.url.indexOf("?");
          const pathname = index !== -1 ? req.url.slice(0, index) : req.url;
          if (pathname !== this.options.path) return false;
        }
        return true;
      }
      /**
       * Handle a HTTP Upgrade request.
       *
       * @param {http.IncomingMessage} req The request object
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Function} cb Callback
       * @public
       */
      handleUpgrade(req, socket, head, cb) {
        socket.on("error", socketOnError);
        const key = req.headers["sec-websocket-key"];
        const upgrade = req.headers.upgrade;
        const version = +req.headers["sec-websocket-version"];
        if (req.method !== "GET") {
          const message = "Invalid HTTP method";
          abortHandshakeOrEmitwsClientError(this, req, socket, 405, message);
          return;
        }
        if (upgrade === void 0 || upgrade.toLowerCase() !== "websocket") {
          const message = "Invalid Upgrade header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
          return;
        }
        if (key === void 0 || !keyRegex.test(key)) {
          const message = "Missing or invalid Sec-WebSocket-Key header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
          return;
        }
        if (version !== 13 && version !== 8) {
          const message = "Missing or invalid Sec-WebSocket-Version header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message, {
            "Sec-WebSocket-Version": "13, 8"
          });
          return;
        }
        if (!this.shouldHandle(req)) {
          abortHandshake(socket, 400);
          return;
        }
        const secWebSocketProtocol = req.headers["sec-websocket-protocol"];
        let protocols = /* @__PURE__ */ new Set();
        if (secWebSocketProtocol !== void 0) {
          try {
            protocols = subprotocol2.parse(secWebSocketProtocol);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Protocol header";
            abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
            return;
          }
        }
        const secWebSocketExtensions = req.headers["sec-websocket-extensions"];
        const extensions5 = {};
        if (this.options.perMessageDeflate && secWebSocketExtensions !== void 0) {
          const perMessageDeflate = new PerMessageDeflate2({
            ...this.options.perMessageDeflate,
            isServer: true,
            maxPayload: this.options.maxPayload
          });
          try {
            const offers = extension2.parse(secWebSocketExtensions);
            if (offers[PerMessageDeflate2.extensionName]) {
              perMessageDeflate.accept(offers[PerMessageDeflate2.extensionName]);
              extensions5[PerMessageDeflate2.extensionName] = perMessageDeflate;
            }
          } catch (err) {
            const message = "Invalid or unacceptable Sec-WebSocket-Extensions header";
            abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
            return;
          }
        }
        if (this.options.verifyClient) {
          const info = {
            origin: req.headers[`${version === 8 ? "sec-websocket-origin" : "origin"}`],
            secure: !!(req.socket.authorized || req.socket.encrypted),
            req
          };
          if (this.options.verifyClient.length === 2) {
            this.options.verifyClient(info, (verified, code, message, headers) => {
              if (!verified) {
                return abortHandshake(socket, code || 401, message, headers);
              }
              this.completeUpgrade(
                extensions5,
                key,
                protocols,
                req,
                socket,
                head,
                cb
              );
            });
            return;
          }
          if (!this.options.verifyClient(info)) return abortHandshake(socket, 401);
        }
        this.completeUpgrade(extensions5, key, protocols, req, socket, head, cb);
      }
      /**
       * Upgrade the connection to WebSocket.
       *
       * @param {Object} extensions The accepted extensions
       * @param {String} key The value of the `Sec-WebSocket-Key` header
       * @param {Set} protocols The subprotocols
       * @param {http.IncomingMessage} req The request object
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Function} cb Callback
       * @throws {Error} If called more than once with the same socket
       * @private
       */
      completeUpgrade(extensions5, key, protocols, req, socket, head, cb) {
        if (!socket.readable || !socket.writable) return socket.destroy();
        if (socket[kWebSocket]) {
          throw new Error(
            "server.handleUpgrade() was called more than once with the same socket, possibly due to a misconfiguration"
          );
        }
        if (this._state > RUNNING) return abortHandshake(socket, 503);
        const digest = createHash3("sha1").update(key + GUID).digest("base64");
        const headers = [
          "HTTP/1.1 101 Switching Protocols",
          "Upgrade: websocket",
          "Connection: Upgrade",
          `Sec-WebSocket-Accept: ${digest}`
        ];
        const ws = new this.options.WebSocket(null, void 0, this.options);
        if (protocols.size) {
          const protocol = this.options.handleProtocols ? this.options.handleProtocols(protocols, req) : protocols.values().next().value;
          if (protocol) {
            headers.push(`Sec-WebSocket-Protocol: ${protocol}`);
            ws._protocol = protocol;
          }
        }
        if (extensions5[PerMessageDeflate2.extensionName]) {
          const params = extensions5[PerMessageDeflate2.extensionName].params;
          const value = extension2.format({
            [PerMessageDeflate2.extensionName]: [params]
          });
          headers.push(`Sec-WebSocket-Extensions: ${value}`);
          ws._extensions = extensions5;
        }
        this.emit("headers", headers, req);
        socket.write(headers.concat("\r\n").join("\r\n"));
        socket.removeListener("error", socketOnError);
        ws.setSocket(socket, head, {
          allowSynchronousEvents: this.options.allowSynchronousEvents,
          maxBufferedChunks: this.options.maxBufferedChunks,
          maxFragments: this.options.maxFragments,
          maxPayload: this.options.maxPayload,
          skipUTF8Validation: this.options.skipUTF8Validation
        });
        if (this.clients) {
          this.clients.add(ws);
          ws.on("close", () => {
            this.clients.delete(ws);
            if (this._shouldEmitClose && !this.clients.size) {
              process.nextTick(emitClose, this);
            }
          });
        }
        cb(ws, req);
      }
    };
    module2.exports = WebSocketServer2;
    function addListeners(server, map) {
      for (const event of Object.keys(map)) server.on(event, map[event]);
      return function removeListeners() {
        for (const event of Object.keys(map)) {
          server.removeListener(event, map[event]);
        }
      };
    }
    function emitClose(server) {
      server._state = CLOSED;
      server.emit("close");
    }
    function socketOnError() {
      this.destroy();
    }
    function abortHandshake(socket, code, message, headers) {
      message = message || http.STATUS_CODES[code];
      headers = {
        Connection: "close",
        "Content-Type": "text/html",
        "Content-Length": Buffer.byteLength(message),
        ...headers
      };
      socket.once("finish", socket.destroy);
      socket.end(
        `HTTP/1.1 ${code} ${http.STATUS_CODES[code]}\r
` + Object.keys(headers).map((h) => `${h}: ${headers[h]}`).join("\r\n") + "\r\n\r\n" + message
      );
    }
    function abortHandshakeOrEmitwsClientError(server, req, socket, code, message, headers) {
      if (server.listenerCount("wsClientError")) {
        const err = new Error(message);
        Error.captureStackTrace(err, abortHandshakeOrEmitwsClientError);
        server.emit("wsClientError", err, socket, req);
      } else {
        abortHandshake(socket, code, message, headers);
      }
    }
  }
});

// src/extension.ts
var extension_exports = {};
__export(extension_exports, {
  activate: () => activate
});
module.exports = __toCommonJS(extension_exports);
var vscode49 = __toESM(require("vscode"));

// src/chat.ts
var vscode = __toESM(require("vscode"));

// src/wait.ts
function once(event, fits, withinMs) {
  return new Promise((done) => {
    const end = () => {
      subscription.dispose();
      clearTimeout(timer);
      done();
    };
    const timer = setTimeout(end, withinMs);
    const subscription = event((value) => {
      if (fits(value)) end();
    });
  });
}
async function within(ms, doing) {
  let timer;
  const late = new Promise((done) => {
    timer = setTimeout(() => done(void 0), ms);
  });
  return Promise.race([doing, late]).finally(() => clearTimeout(timer));
}

// src/chat.ts
var OPEN = "workbench.action.chat.open";
var WITHIN_MS = 1e4;
function watchChat(desk) {
  let offered2 = false;
  const offer = async () => {
    const wanted = isWanted() && await canOpen();
    if (wanted === offered2) return;
    offered2 = wanted;
    desk.line.registerWith({ chat: wanted });
  };
  void offer();
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((change2) => {
      if (change2.affectsConfiguration("prism.chat.wake")) void offer();
    }),
    desk.line.onMessage("ring", (message) => {
      const { id, text: text2, deadline_ms } = message;
      if (typeof id !== "number") return;
      void ring(typeof text2 === "string" ? text2 : "", typeof deadline_ms === "number" ? deadline_ms : WITHIN_MS).then(
        () => desk.line.send({ type: "rung", id, status: "ok" }),
        (error) => {
          const why = error instanceof Error ? error.message : String(error);
          desk.log.warn(`The chat was not rung: ${why}`);
          desk.line.send({ type: "rung", id, status: "error", error: { code: "failed", message: why } });
        }
      );
    })
  );
}
async function ring(text2, withinMs) {
  if (!isWanted()) throw new Error("prism.chat.wake is off in this editor");
  if (text2.trim() === "") throw new Error("the bell has no text");
  if (!await canOpen()) throw new Error("this editor has no chat that can be opened");
  if ((await vscode.lm.selectChatModels()).length === 0) {
    throw new Error("the chat of this editor has no model; sign in to it first");
  }
  const query = { query: text2, isPartialQuery: false, mode: "agent" };
  const opened2 = vscode.commands.executeCommand(OPEN, query).then(() => true);
  if (!await within(withinMs, opened2)) throw new Error("the chat did not open in time");
}
function isWanted() {
  return vscode.workspace.getConfiguration("prism").get("chat.wake") === true;
}
async function canOpen() {
  return (await vscode.commands.getCommands(true)).includes(OPEN);
}

// src/doing.ts
var LASTS_MS = 1e4;
var MAX_DOINGS = 64;
var Doing = class {
  deeds = /* @__PURE__ */ new Map();
  /**
   * Notes that a session does something to a path (or to the window) that an event will tell of. What is returned ends
   * that, and says whether no event has come.
   */
  note(event, path, by) {
    const [key, deed] = [keyOf(event, path), { by, until: Date.now() + LASTS_MS }];
    if (this.deeds.size >= MAX_DOINGS) this.deeds.clear();
    this.deeds.set(key, deed);
    return () => this.deeds.get(key) === deed && this.deeds.delete(key);
  }
  /** Whose doing an event is, if it is a session's. It is told once. */
  take(event, path) {
    const key = keyOf(event, path);
    const deed = this.deeds.get(key);
    this.deeds.delete(key);
    return deed && deed.until >= Date.now() ? { by: deed.by } : {};
  }
};
function keyOf(event, path) {
  return `${event}
${path}`;
}

// src/events/analysis.ts
var vscode5 = __toESM(require("vscode"));

// src/language/heard.ts
var vscode3 = __toESM(require("vscode"));

// src/language/tab.ts
var vscode2 = __toESM(require("vscode"));
function hasTab({ uri }) {
  const name = uri.toString();
  const isIts = ({ input }) => input instanceof vscode2.TabInputText && input.uri.toString() === name || input instanceof vscode2.TabInputTextDiff && input.modified.toString() === name;
  return vscode2.window.tabGroups.all.some((group) => group.tabs.some(isIts));
}

// src/language/heard.ts
var heard = /* @__PURE__ */ new WeakMap();
var changedAt = /* @__PURE__ */ new WeakMap();
var muted = /* @__PURE__ */ new WeakMap();
var silent = /* @__PURE__ */ new WeakMap();
var SETTLE_MS = 250;
var SOON_MS = 150;
var SETTLE_SOON_MS = 1500;
var PATIENCE_MS = 2e3;
var MUTED_MS = 150;
function listen() {
  return vscode3.Disposable.from(
    vscode3.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0) changedAt.set(document, Date.now());
    }),
    vscode3.languages.onDidChangeDiagnostics(({ uris }) => {
      const [named, now] = [new Set(uris.map(String)), Date.now()];
      for (const document of vscode3.workspace.textDocuments) {
        if (!named.has(document.uri.toString()) || now < (muted.get(document) ?? 0)) continue;
        const isSoon = now - (changedAt.get(document) ?? 0) < SOON_MS;
        heard.set(document, {
          version: document.version,
          at: now,
          settledAt: now + (isSoon ? SETTLE_SOON_MS : SETTLE_MS)
        });
      }
    })
  );
}
function lend(document, errors) {
  const lent = vscode3.languages.createDiagnosticCollection("prism");
  muted.set(document, Number.POSITIVE_INFINITY);
  lent.set(document.uri, errors);
  return new vscode3.Disposable(() => {
    lent.dispose();
    muted.set(document, Date.now() + MUTED_MS);
  });
}
function ageOf(document) {
  const last = heard.get(document);
  return last && document.version - last.version;
}
function settledAt(document) {
  const last = heard.get(document);
  return last?.version === document.version ? last.settledAt : void 0;
}
function isSilent(document) {
  return silent.get(document) === document.version && settledAt(document) === void 0 && !hasTab(document);
}
async function untilHeard(document, until, stop) {
  for (const began = Date.now(); ; ) {
    const now = Date.now();
    const quietAt = settledAt(document) ?? Number.POSITIVE_INFINITY;
    if (now >= quietAt || stop.isCancellationRequested || document.isClosed) return;
    if (now >= until) {
      if (quietAt === Number.POSITIVE_INFINITY && now - began >= PATIENCE_MS) silent.set(document, document.version);
      return;
    }
    await change(Math.min(quietAt, until) - now, stop);
  }
}
function change(milliseconds, stop) {
  return new Promise((done) => {
    const listeners = [];
    const end = () => {
      clearTimeout(timer);
      for (const listener of listeners) listener.dispose();
      setImmediate(done);
    };
    const timer = setTimeout(end, Math.max(1, milliseconds));
    listeners.push(
      vscode3.languages.onDidChangeDiagnostics(end),
      vscode3.workspace.onDidChangeTextDocument(end),
      vscode3.workspace.onDidCloseTextDocument(end),
      stop.onCancellationRequested(end)
    );
  });
}

// src/language/typescript.ts
var vscode4 = __toESM(require("vscode"));
var LANGUAGES = /* @__PURE__ */ new Set(["typescript", "typescriptreact", "javascript", "javascriptreact"]);
var EXTENSION = "vscode.typescript-language-features";
var COMMAND = "typescript.tsserverRequest";
var loaded = /* @__PURE__ */ new WeakSet();
function isTypeScript(document) {
  return LANGUAGES.has(document.languageId) && vscode4.extensions.getExtension(EXTENSION) !== void 0;
}
async function load(document, stop) {
  if (loaded.has(document)) return;
  await ask("semanticDiagnosticsSync", document, stop);
}
async function diagnose(document, stop) {
  const kinds = ["syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"];
  const answers = await Promise.all(kinds.map((kind) => ask(kind, document, stop)));
  const usual = document.languageId.startsWith("typescript") ? "ts" : "js";
  const found3 = [];
  for (const answer of answers) {
    if (!answer) return void 0;
    for (const one of answer) found3.push(diagnosticOf(one, usual));
  }
  return found3;
}
function isItsOwn(diagnostic) {
  return diagnostic.source === "ts" || diagnostic.source === "js";
}
async function ask(request2, document, stop) {
  try {
    await vscode4.extensions.getExtension(EXTENSION)?.activate();
    const file = document.uri;
    const response = await vscode4.commands.executeCommand(
      COMMAND,
      request2,
      { file },
      void 0,
      stop
    );
    if (response?.type !== "response" || !Array.isArray(response.body)) return void 0;
    if (request2 === "semanticDiagnosticsSync") loaded.add(document);
    return response.body;
  } catch {
    return void 0;
  }
}
function diagnosticOf(one, usual) {
  const place = ({ line, offset }) => new vscode4.Position(Math.max(0, line - 1), Math.max(0, offset - 1));
  const diagnostic = new vscode4.Diagnostic(
    new vscode4.Range(place(one.start), place(one.end)),
    one.text,
    severityOf(one.category)
  );
  diagnostic.source = one.source ?? usual;
  if (one.code !== void 0) diagnostic.code = one.code;
  return diagnostic;
}
function severityOf(category) {
  switch (category) {
    case "warning":
      return vscode4.DiagnosticSeverity.Warning;
    case "suggestion":
      return vscode4.DiagnosticSeverity.Hint;
    case "message":
      return vscode4.DiagnosticSeverity.Information;
    default:
      return vscode4.DiagnosticSeverity.Error;
  }
}

// src/events/analysis.ts
var GATHER_MS = 200;
var REST_MS = 400;
var MAX_WAITING = 200;
var MAX_FAULTY = 1e3;
var MAX_ASKED = 2;
function watchAnalysis(desk) {
  const listening = listen();
  const told6 = new Told(desk);
  return vscode5.Disposable.from(listening, told6, new Asked(desk, told6));
}
var Told = class {
  constructor(desk) {
    this.desk = desk;
    this.subscription = vscode5.languages.onDidChangeDiagnostics(({ uris }) => {
      for (const uri of uris) {
        if (uri.scheme === "file" && this.waiting.size < MAX_WAITING) this.waiting.set(uri.toString(), uri);
      }
      if (this.waiting.size > 0) this.timer ??= setTimeout(() => this.tellAll(), GATHER_MS);
    });
  }
  desk;
  waiting = /* @__PURE__ */ new Map();
  subscription;
  /** What was last told of open texts. */
  last = /* @__PURE__ */ new WeakMap();
  /** Files that are not open and were told to have errors. */
  faulty = /* @__PURE__ */ new Set();
  timer;
  dispose() {
    clearTimeout(this.timer);
    this.subscription.dispose();
  }
  /** Tells of one text, unless the same was told of it before. */
  tell(document, diagnostics) {
    const text2 = this.desk.texts.of(document);
    if (!text2) return;
    const count2 = counted(diagnostics, text2.version);
    const last = this.last.get(document);
    if (last && last.version === count2.version && last.errors === count2.errors && last.warnings === count2.warnings)
      return;
    if (!last && count2.errors + count2.warnings === 0) return;
    this.last.set(document, count2);
    this.desk.voice.tell("errors_detected", text2.path, { ...count2 });
  }
  /** Tells of all that count by now; the others wait. */
  tellAll() {
    this.timer = void 0;
    const open = new Map(vscode5.workspace.textDocuments.map((document) => [document.uri.toString(), document]));
    for (const [key, uri] of [...this.waiting]) {
      const document = open.get(key);
      const isAsked = document && isTypeScript(document) && !hasTab(document);
      const isPast = document && ageOf(document) !== 0;
      if (document && !isAsked && !isPast && (settledAt(document) ?? 0) > Date.now()) continue;
      this.waiting.delete(key);
      if (isAsked || isPast) continue;
      const diagnostics = vscode5.languages.getDiagnostics(uri);
      const path = this.desk.roots.path(uri);
      if (document) this.tell(document, diagnostics);
      else if (path !== void 0) this.tellClosed(path, counted(diagnostics, null));
    }
    if (this.waiting.size > 0) this.timer = setTimeout(() => this.tellAll(), GATHER_MS);
  }
  tellClosed(path, count2) {
    const hasAny = count2.errors + count2.warnings > 0;
    if (!hasAny && !this.faulty.delete(path)) return;
    if (hasAny && this.faulty.size < MAX_FAULTY) this.faulty.add(path);
    this.desk.voice.tell("errors_detected", path, { ...count2 });
  }
};
var Asked = class {
  constructor(desk, told6) {
    this.told = told6;
    this.subscriptions = vscode5.Disposable.from(
      desk.texts.onChange(({ text: text2, by }) => {
        if (by !== void 0 && isTypeScript(text2.document)) this.rest(text2.document);
      }),
      vscode5.workspace.onDidCloseTextDocument((document) => this.forget(document))
    );
  }
  told;
  resting = /* @__PURE__ */ new Map();
  subscriptions;
  stop = new vscode5.CancellationTokenSource();
  asking = 0;
  dispose() {
    this.stop.cancel();
    this.stop.dispose();
    for (const timer of this.resting.values()) clearTimeout(timer);
    this.subscriptions.dispose();
  }
  rest(document) {
    this.forget(document);
    if (this.resting.size >= MAX_WAITING) return;
    this.resting.set(
      document,
      setTimeout(() => void this.ask(document), REST_MS)
    );
  }
  forget(document) {
    clearTimeout(this.resting.get(document));
    this.resting.delete(document);
  }
  async ask(document) {
    this.resting.delete(document);
    if (document.isClosed || this.stop.token.isCancellationRequested || hasTab(document)) return;
    if (this.asking >= MAX_ASKED) return this.rest(document);
    this.asking += 1;
    try {
      const before = document.version;
      const own = await diagnose(document, this.stop.token);
      if (!own || document.isClosed || document.version !== before) return;
      const others = vscode5.languages.getDiagnostics(document.uri).filter((one) => !isItsOwn(one));
      this.told.tell(document, [...own, ...others]);
    } finally {
      this.asking -= 1;
    }
  }
};
function counted(diagnostics, version) {
  const count2 = (severity) => diagnostics.filter((one) => one.severity === severity).length;
  return {
    version,
    errors: count2(vscode5.DiagnosticSeverity.Error),
    warnings: count2(vscode5.DiagnosticSeverity.Warning)
  };
}

// src/events/project.ts
var vscode6 = __toESM(require("vscode"));
var PAUSE = 100;
function watchProject(desk) {
  let timer;
  const listening = [
    desk.roots.onChange(() => desk.voice.tell("workspace_changed", void 0, { roots: [...desk.roots.all] })),
    vscode6.workspace.onDidChangeConfiguration(() => {
      timer ??= setTimeout(() => {
        timer = void 0;
        desk.voice.tell("config_updated", void 0);
      }, PAUSE);
    })
  ];
  return new vscode6.Disposable(() => {
    clearTimeout(timer);
    listening.forEach((one) => one.dispose());
  });
}

// src/events/texts.ts
var vscode7 = __toESM(require("vscode"));

// src/digest.ts
var import_node_crypto = require("node:crypto");
function digestOf(content) {
  return (0, import_node_crypto.createHash)("sha256").update(content).digest("hex");
}
function asText(bytes) {
  if (bytes.includes(0)) return void 0;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return void 0;
  }
}
function unbroken(text2) {
  return text2.replace(/\r\n?/g, "\n");
}
function isSameText(one, other) {
  return one === other || unbroken(one) === unbroken(other);
}

// src/place.ts
function toldPlace(place) {
  return { line: place.line, character: place.character };
}
function toldSpan(span2) {
  return { start: toldPlace(span2.start), end: toldPlace(span2.end) };
}
var Lines = class {
  /** A line ends with `\n`, `\r\n` or `\r`; what follows the last break is a line too, be it empty. */
  constructor(text2) {
    this.text = text2;
    let start = 0;
    for (const found3 of text2.matchAll(/\r\n|\r|\n/g)) {
      this.ends.push([start, found3.index]);
      start = found3.index + found3[0].length;
    }
    this.ends.push([start, text2.length]);
  }
  text;
  /** Where each begins, and where it ends without its break. */
  ends = [];
  get count() {
    return this.ends.length;
  }
  /** Returns where a place is in the text. Beyond the end of a line is its end; what is no place is said in words. */
  offset(place) {
    const known = this.ends[place.line];
    if (!known) return `there is no line ${place.line}; the last is ${this.ends.length - 1}`;
    const [start, end] = known;
    const offset = Math.min(start + place.character, end);
    if (offset > start && offset < end && isWithinCharacter(this.text, offset)) {
      return `line ${place.line} has no place ${place.character}: it is within a character`;
    }
    return offset;
  }
  /** Returns the place of an offset. Within a break is the end of its line. */
  place(offset) {
    let [low, high] = [0, this.ends.length - 1];
    while (low < high) {
      const middle = low + high + 1 >> 1;
      if ((this.ends[middle]?.[0] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const [start, end] = this.ends[low] ?? [0, 0];
    return { line: low, character: Math.max(0, Math.min(offset, end) - start) };
  }
  /** Returns the place itself, or the nearest before it that there is. */
  nearest(place) {
    const line = Math.min(place.line, this.ends.length - 1);
    const [start, end] = this.ends[line] ?? [0, 0];
    if (line !== place.line) return { line, character: end - start };
    let offset = Math.min(start + place.character, end);
    if (offset > start && offset < end && isWithinCharacter(this.text, offset)) offset -= 1;
    return { line, character: offset - start };
  }
};
function isWithinCharacter(text2, offset) {
  const [before, after] = [text2.charCodeAt(offset - 1), text2.charCodeAt(offset)];
  return before >= 55296 && before < 56320 && after >= 56320 && after < 57344;
}
function lineCount(text2) {
  if (text2 === "") return 0;
  let count2 = 0;
  for (let at2 = text2.indexOf("\n"); at2 >= 0; at2 = text2.indexOf("\n", at2 + 1)) count2 += 1;
  return text2.endsWith("\n") ? count2 : count2 + 1;
}

// src/events/texts.ts
var SETTLED_MS = 50;
function watchTexts(desk, mirror) {
  const { texts: texts2, voice, doing } = desk;
  return vscode7.Disposable.from(
    texts2.onChange((change2) => voice.tell("buffer_changed", change2.text.path, mirror.changed(change2))),
    texts2.onDirty((document) => {
      setTimeout(() => {
        const text2 = texts2.of(document);
        const data = text2 && mirror.dirtied(text2);
        if (data) voice.tell("buffer_changed", text2.path, data);
      }, SETTLED_MS);
    }),
    texts2.onMove(({ opened: opened2, closed }) => {
      for (const { path, version } of opened2) voice.tell("file_opened", path, { version });
      for (const path of closed) {
        mirror.closed(path);
        voice.tell("file_closed", path, doing.take("file_closed", path));
      }
    }),
    vscode7.workspace.onDidSaveTextDocument((document) => {
      const text2 = texts2.of(document);
      if (!text2) return;
      mirror.saved(text2);
      if (doing.take("discard", text2.path).by !== void 0) return;
      const by = doing.take("file_saved", text2.path);
      voice.tell("file_saved", text2.path, { version: text2.version, digest: digestOf(document.getText()), ...by });
    }),
    watchCursor(desk)
  );
}
function watchCursor({ texts: texts2, voice, doing }) {
  return vscode7.Disposable.from(
    vscode7.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => {
      const path = texts2.of(textEditor.document)?.path;
      if (path === void 0) return;
      const isTheirs = kind !== void 0 && kind !== vscode7.TextEditorSelectionChangeKind.Command;
      const whose = (event) => isTheirs ? {} : doing.take(event, path);
      const by = whose("cursor_moved");
      voice.tellMoving("cursor_moved", path, () => ({ position: toldPlace(textEditor.selection.active), ...by }));
      if (!textEditor.selection.isEmpty || hadSelection.has(textEditor)) {
        const selectedBy = whose("selection_changed");
        voice.tellMoving("selection_changed", path, () => ({ range: toldSpan(textEditor.selection), ...selectedBy }));
      }
      if (textEditor.selection.isEmpty) hadSelection.delete(textEditor);
      else hadSelection.add(textEditor);
    }),
    vscode7.window.onDidChangeTextEditorVisibleRanges(({ textEditor, visibleRanges }) => {
      const path = texts2.of(textEditor.document)?.path;
      const [first, last] = [visibleRanges[0], visibleRanges.at(-1)];
      if (path === void 0 || !first || !last) return;
      const by = doing.take("viewport_changed", path);
      const told6 = { first_line: first.start.line, last_line: last.end.line, ...by };
      voice.tellMoving("viewport_changed", path, () => told6);
    })
  );
}
var hadSelection = /* @__PURE__ */ new WeakSet();

// src/events/windows.ts
var vscode9 = __toESM(require("vscode"));

// src/panes.ts
var vscode8 = __toESM(require("vscode"));
function groupAt(pane) {
  return vscode8.window.tabGroups.all.find((group) => group.viewColumn === pane);
}
function groupShowing(uri) {
  const name = uri.toString();
  const shows = (group) => group.tabs.some(({ input }) => input instanceof vscode8.TabInputText && input.uri.toString() === name);
  const { activeTabGroup, all } = vscode8.window.tabGroups;
  return shows(activeTabGroup) ? activeTabGroup : all.find(shows);
}
function pathIn(group, { roots }) {
  const input = group.activeTab?.input;
  return input instanceof vscode8.TabInputText ? roots.path(input.uri) : void 0;
}
async function show(document, selection) {
  const group = groupShowing(document.uri) ?? vscode8.window.tabGroups.activeTabGroup;
  return vscode8.window.showTextDocument(document, {
    viewColumn: group.viewColumn,
    preview: false,
    ...selection ? { selection } : {}
  });
}

// src/events/windows.ts
var FILLED_WITHIN_MS = 1e3;
var SECTIONS = ["editor", "files", "workbench", "terminal", "git", "search", "debug", "extensions", "prism"];
function watchWindows(desk) {
  const { roots, texts: texts2, voice, doing } = desk;
  return vscode9.Disposable.from(
    vscode9.window.onDidChangeActiveTextEditor((editor) => {
      const path = editor && texts2.of(editor.document)?.path;
      if (path === void 0) return;
      const pane = vscode9.window.tabGroups.activeTabGroup.viewColumn;
      voice.tell("tab_switched", path, { pane, ...doing.take("tab_switched", path) });
    }),
    vscode9.window.tabGroups.onDidChangeTabGroups(({ opened: opened2 }) => {
      for (const { viewColumn } of opened2) void toldSplit(desk, viewColumn);
    }),
    vscode9.workspace.onDidChangeConfiguration((change2) => {
      const sections = SECTIONS.filter((section) => change2.affectsConfiguration(section));
      if (roots.all[0] !== void 0) voice.tell("settings_changed", roots.all[0], { sections });
    }),
    vscode9.extensions.onDidChange(() => {
      if (roots.all[0] !== void 0)
        voice.tell("plugin_loaded", roots.all[0], { extensions: vscode9.extensions.all.length });
    })
  );
}
async function toldSplit(desk, pane) {
  if (desk.doing.take("pane_split", "").by !== void 0) return;
  const path = () => {
    const group = groupAt(pane);
    return group && pathIn(group, desk);
  };
  if (path() === void 0)
    await once(vscode9.window.tabGroups.onDidChangeTabs, () => path() !== void 0, FILLED_WITHIN_MS);
  const shown2 = path();
  if (shown2 !== void 0) desk.voice.tell("pane_split", shown2, { pane });
}

// src/hub.ts
var import_promises2 = require("node:fs/promises");
var nodePath2 = __toESM(require("node:path"));
var vscode11 = __toESM(require("vscode"));

// src/find.ts
var import_promises = require("node:fs/promises");
var import_node_fs = require("node:fs");
var import_node_os = require("node:os");
var nodePath = __toESM(require("node:path"));
var vscode10 = __toESM(require("vscode"));
var REGISTRATION = "http-mcp.json";
var TOKEN = "plugin-token";
function home() {
  const set = vscode10.workspace.getConfiguration("prism").get("home")?.trim();
  if (set) return set === "~" || set.startsWith("~/") ? nodePath.join((0, import_node_os.homedir)(), set.slice(1)) : set;
  return process.env["PRISM_HOME"] || nodePath.join((0, import_node_os.homedir)(), ".prism");
}
async function find() {
  try {
    const folder = home();
    const registration = JSON.parse(await (0, import_promises.readFile)(nodePath.join(folder, REGISTRATION), "utf8"));
    const token = (await (0, import_promises.readFile)(nodePath.join(folder, TOKEN), "utf8")).trim();
    if (typeof registration !== "object" || registration === null) return void 0;
    const { port, socket } = registration;
    if (typeof port !== "number" || !token) return void 0;
    return { port, token, socket: typeof socket === "string" ? socket : void 0 };
  } catch {
    return void 0;
  }
}
var Lookout = class {
  constructor(appeared) {
    this.appeared = appeared;
    this.follow();
    this.settings = vscode10.workspace.onDidChangeConfiguration((change2) => {
      if (!change2.affectsConfiguration("prism.home")) return;
      this.end();
      this.follow();
      appeared();
    });
  }
  appeared;
  watcher;
  settings;
  dispose() {
    this.settings.dispose();
    this.end();
  }
  /** Watches the folder, unless it is watched. Where it is not there, a daemon is found by trying again. */
  follow() {
    if (this.watcher) return;
    try {
      this.watcher = (0, import_node_fs.watch)(home(), { persistent: false }, (_, name) => {
        if (name === REGISTRATION) this.appeared();
      });
      this.watcher.on("error", () => this.end());
    } catch {
      this.watcher = void 0;
    }
  }
  end() {
    this.watcher?.close();
    this.watcher = void 0;
  }
};

// src/hub.ts
var PROVIDER = "prism.hub";
var TOKEN2 = "http-mcp-token";
function offerHub(desk, context) {
  const { lm: lm2, McpHttpServerDefinition: Server } = vscode11;
  if (!lm2?.registerMcpServerDefinitionProvider || !Server) return vscode11.Disposable.from();
  const changed = new vscode11.EventEmitter();
  const provider = {
    onDidChangeMcpServerDefinitions: changed.event,
    async provideMcpServerDefinitions() {
      const found3 = await find();
      if (!found3 || !isWanted2() || await isListed(found3.port, context)) return [];
      const version = desk.line.state.is === "connected" ? desk.line.state.version : void 0;
      return [new Server("Prism", vscode11.Uri.parse(`http://127.0.0.1:${found3.port}/mcp`), {}, version)];
    },
    // The editor keeps what is provided on its disk, and not what is resolved: so the token is only here.
    async resolveMcpServerDefinition(server) {
      const token = await (0, import_promises2.readFile)(nodePath2.join(home(), TOKEN2), "utf8").catch(() => "");
      if (token.trim() === "") return void 0;
      server.headers = { ...server.headers, Authorization: `Bearer ${token.trim()}` };
      return server;
    }
  };
  return vscode11.Disposable.from(
    changed,
    lm2.registerMcpServerDefinitionProvider(PROVIDER, provider),
    // A daemon that comes back may have another port.
    desk.line.onState((state) => {
      if (state.is === "connected") changed.fire();
    }),
    vscode11.workspace.onDidChangeConfiguration((change2) => {
      if (change2.affectsConfiguration("prism.hub") || change2.affectsConfiguration("prism.home")) changed.fire();
    })
  );
}
function isWanted2() {
  return vscode11.workspace.getConfiguration("prism").get("hub.provide") !== false;
}
async function isListed(port, context) {
  const folders = (vscode11.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
  const files2 = [
    nodePath2.join(context.globalStorageUri.fsPath, "..", "..", "mcp.json"),
    ...folders.map(({ uri }) => nodePath2.join(uri.fsPath, ".vscode", "mcp.json"))
  ];
  for (const file of files2) {
    const text2 = await (0, import_promises2.readFile)(file, "utf8").catch(() => "");
    if (leadsTo(port, text2)) return true;
  }
  return false;
}
function leadsTo(port, text2) {
  const address = new RegExp(`"https?://(127\\.0\\.0\\.1|localhost|\\[::1\\]):${port}/`);
  const shim = /"command"\s*:\s*"([^"]*\/)?prism"/;
  return address.test(text2) || shim.test(text2) && text2.includes('"stdio"');
}

// node_modules/ws/wrapper.mjs
var import_stream = __toESM(require_stream(), 1);
var import_extension = __toESM(require_extension(), 1);
var import_permessage_deflate = __toESM(require_permessage_deflate(), 1);
var import_receiver = __toESM(require_receiver(), 1);
var import_sender = __toESM(require_sender(), 1);
var import_subprotocol = __toESM(require_subprotocol(), 1);
var import_websocket = __toESM(require_websocket(), 1);
var import_websocket_server = __toESM(require_websocket_server(), 1);
var wrapper_default = import_websocket.default;

// src/line.ts
var vscode14 = __toESM(require("vscode"));

// src/commands.ts
var vscode12 = __toESM(require("vscode"));

// src/refusal.ts
var Refusal = class _Refusal extends Error {
  constructor(code, message, retryAfterMs) {
    super(message);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.name = "Refusal";
  }
  code;
  retryAfterMs;
  /** Whatever was thrown, as a refusal. */
  static of(error) {
    if (error instanceof _Refusal) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new _Refusal("failed", message || "the editor refused it and does not say why");
  }
};
function wrong(message) {
  return new Refusal("bad_arguments", message);
}

// src/args.ts
var MOST_LINES = 4294967295;
var Args = class _Args {
  left;
  /** All that were asked for, to tell whoever gave another. */
  known = [];
  constructor(given) {
    this.left = new Map(Object.entries(given));
  }
  /** The members of an argument that is an object. */
  static members(name, value) {
    if (kindOf(value) !== "an object") throw wrong(`\`${name}\` must be an object, not ${kindOf(value)}`);
    return new _Args(value);
  }
  /** Takes an argument out; `null` is as good as none. */
  take(name) {
    this.known.push(name);
    const value = this.left.get(name);
    this.left.delete(name);
    return value === null ? void 0 : value;
  }
  text(name) {
    const text2 = this.maybeText(name);
    if (text2 === void 0) throw wrong(`\`${name}\` is missing: a string`);
    return text2;
  }
  maybeText(name) {
    const value = this.take(name);
    if (value === void 0 || typeof value === "string") return value;
    throw wrong(`\`${name}\` must be a string, not ${kindOf(value)}`);
  }
  /** One of a few words; the first if none is given. */
  choice(name, words2) {
    const value = this.maybeText(name);
    if (value === void 0) return words2[0];
    const found3 = words2.find((word) => word === value);
    if (found3 === void 0) {
      const all = words2.map((word) => JSON.stringify(word));
      const listed = [all.slice(0, -1).join(", "), all.at(-1)].filter(Boolean).join(" or ");
      throw wrong(`\`${name}\` is ${listed}, not ${JSON.stringify(value)}`);
    }
    return found3;
  }
  flag(name) {
    const value = this.take(name);
    if (value === void 0) return false;
    if (typeof value === "boolean") return value;
    throw wrong(`\`${name}\` must be true or false, not ${kindOf(value)}`);
  }
  /** A whole number within bounds. */
  number(name, least, most) {
    const value = this.take(name);
    if (value === void 0) return void 0;
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
    const told6 = typeof value === "number" ? String(value) : kindOf(value);
    throw wrong(`\`${name}\` must be a whole number from ${least} to ${most}, not ${told6}`);
  }
  /** A place in a text. */
  position(name) {
    const value = this.take(name);
    return value === void 0 ? void 0 : placeOf(name, value);
  }
  /** Two places. */
  range(name) {
    const value = this.take(name);
    return value === void 0 ? void 0 : spanOf(name, value);
  }
  list(name) {
    const value = this.take(name);
    if (value === void 0 || Array.isArray(value)) return value;
    throw wrong(`\`${name}\` must be an array, not ${kindOf(value)}`);
  }
  /** What a file is to hold. */
  content(name) {
    const content = this.maybeText(name);
    const encoding = this.maybeText("encoding");
    if (content === void 0) return void 0;
    if (encoding === void 0 || encoding === "utf-8") return Buffer.from(content, "utf8");
    if (encoding !== "base64") throw wrong(`\`encoding\` is "utf-8" or "base64", not ${JSON.stringify(encoding)}`);
    const bytes = Buffer.from(content, "base64");
    if (bytes.toString("base64") !== content) {
      throw wrong(`\`${name}\` is not base64 (the standard alphabet, padded, no line breaks)`);
    }
    return bytes;
  }
  /** Refuses what is left. To be called before anything is done. */
  done() {
    for (const name of this.left.keys()) {
      const known = this.known.map((one) => `\`${one}\``).join(", ");
      throw wrong(`there is no argument ${JSON.stringify(name)}; ${known ? `it takes ${known}` : "it takes none"}`);
    }
  }
};
function placeOf(name, value) {
  const place = Args.members(name, value);
  const number2 = (member) => {
    const found4 = place.number(member, 0, MOST_LINES);
    if (found4 === void 0) throw wrong(`\`${name}\` has no \`${member}\``);
    return found4;
  };
  const found3 = { line: number2("line"), character: number2("character") };
  place.done();
  return found3;
}
function spanOf(name, value) {
  const ends = Args.members(name, value);
  const endOf = (end) => {
    const place = ends.take(end);
    if (place === void 0) throw wrong(`\`${name}\` has no \`${end}\``);
    return placeOf(end, place);
  };
  const found3 = { start: endOf("start"), end: endOf("end") };
  ends.done();
  return found3;
}
function kindOf(value) {
  if (value === null || value === void 0) return "null";
  if (Array.isArray(value)) return "an array";
  switch (typeof value) {
    case "boolean":
      return "a boolean";
    case "number":
      return "a number";
    case "string":
      return "a string";
    default:
      return "an object";
  }
}

// src/paths.ts
var import_node_fs2 = require("node:fs");
var nodePath3 = __toESM(require("node:path"));
var MAX_LINKS = 40;
function isBeneath(path, folder) {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}
function realOf(path) {
  const missing = [];
  for (let there = nodePath3.resolve(path), links = 0; ; ) {
    try {
      return nodePath3.join(import_node_fs2.realpathSync.native(there), ...missing);
    } catch (error) {
      if (!isMissing(error) || links > MAX_LINKS) throw error;
    }
    const goal = linkedTo(there);
    if (goal === void 0) {
      missing.unshift(nodePath3.basename(there));
      there = nodePath3.dirname(there);
    } else {
      there = nodePath3.resolve(nodePath3.dirname(there), goal);
      links += 1;
    }
  }
}
function linkedTo(path) {
  try {
    return (0, import_node_fs2.readlinkSync)(path);
  } catch {
    return void 0;
  }
}
function realOr(path) {
  try {
    return realOf(path);
  } catch {
    return nodePath3.resolve(path);
  }
}
function realNameOf(path) {
  const whole = nodePath3.resolve(path);
  return nodePath3.join(realOf(nodePath3.dirname(whole)), nodePath3.basename(whole));
}
function isMissing(error) {
  const code = error.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

// src/commands.ts
var MAX_COMMANDS = 64;
var EARLIER_MS = 250;
var MOST_MS = 2147483647;
var Commands = class {
  constructor(desk, verbs2, send) {
    this.desk = desk;
    this.verbs = verbs2;
    this.send = send;
  }
  desk;
  verbs;
  send;
  running = /* @__PURE__ */ new Map();
  take(command) {
    const { id, action } = command;
    if (this.running.size >= MAX_COMMANDS) {
      const why = `${MAX_COMMANDS} commands are on their way already; try again`;
      return this.answer(id, new Refusal("rate_limited", why, 1e3));
    }
    const stop = new vscode12.CancellationTokenSource();
    const late = () => {
      const why = "took too long in this editor; whether it was done is not known, look again";
      stop.cancel();
      end(new Refusal("timed_out", `${action} ${why}`));
    };
    const withinMs = Math.min(Math.max(command.deadline_ms - EARLIER_MS, 0), MOST_MS);
    const running = { stop, timer: setTimeout(late, withinMs) };
    const isRunning = () => this.running.get(id) === running;
    const end = (result) => {
      if (!isRunning()) return;
      this.forget(id);
      this.answer(id, result);
    };
    this.running.set(id, running);
    const progress = (message, done, total) => {
      const counts = { ...done === void 0 ? {} : { done }, ...total === void 0 ? {} : { total } };
      if (isRunning()) this.send({ type: "progress", id, message, ...counts });
    };
    const call = {
      args: new Args(command.args),
      session: command.session_id,
      mayChange: (path) => command.roots?.some((root) => isBeneath(path, root)) ?? true,
      stop: stop.token,
      desk: this.desk,
      progress
    };
    void this.run(action, call).then(end, (error) => end(this.refusalOf(action, error)));
  }
  /** Ends a command that nobody waits for any more. */
  cancel(id) {
    this.running.get(id)?.stop.cancel();
    this.forget(id);
  }
  /** Ends all: there is nobody to answer any more. */
  end() {
    for (const id of [...this.running.keys()]) this.cancel(id);
  }
  forget(id) {
    const running = this.running.get(id);
    clearTimeout(running?.timer);
    running?.stop.dispose();
    this.running.delete(id);
  }
  async run(action, call) {
    const verb = this.verbs.get(action);
    if (!verb) throw new Refusal("unsupported", `this editor cannot ${action}`);
    return verb(call);
  }
  refusalOf(action, error) {
    if (!(error instanceof Refusal)) this.desk.log.warn(`${action} failed: ${String(error)}`);
    return Refusal.of(error);
  }
  answer(id, result) {
    if (!(result instanceof Refusal)) {
      if (this.send({ type: "result", id, status: "ok", data: result })) return;
      return this.answer(id, new Refusal("too_large", "the result is too large for one message; ask for less"));
    }
    const error = { code: result.code, message: result.message };
    if (result.retryAfterMs !== void 0) error.details = { retry_after_ms: result.retryAfterMs };
    this.send({ type: "result", id, status: "error", error });
  }
};

// src/pulse.ts
var vscode13 = __toESM(require("vscode"));
var WITHIN_MS2 = 5e3;
var beats = 0;
async function isWindowAlive() {
  beats += 1;
  const answered = vscode13.commands.executeCommand("setContext", "prism.alive", beats).then(
    () => true,
    () => false
  );
  return await within(WITHIN_MS2, answered) === true;
}

// src/protocol.ts
var PROTOCOL = 1;

// src/line.ts
var FIRST_WAIT_MS = 250;
var LONGEST_WAIT_MS = 1e4;
var DIAL_WITHIN_MS = 5e3;
var REGISTERED_WITHIN_MS = 1e4;
var MAX_UNSENT_BYTES = 8 << 20;
var MAX_SENT_BYTES = 16 << 20;
var MAX_MESSAGE_BYTES = 32 << 20;
var Line = class {
  constructor(self2) {
    this.self = self2;
  }
  self;
  socket;
  now = { is: "off" };
  tries = 0;
  timer;
  isEnded = false;
  isDialling = false;
  desk;
  capabilities = [];
  commands;
  lookout;
  states = new vscode14.EventEmitter();
  heard = new vscode14.EventEmitter();
  subscriptions = [];
  /** Members that parts of the extension add to the registration. */
  additions = {};
  onState = this.states.event;
  /** Begins to look for the daemon, to offer it these verbs. */
  start(desk, verbs2) {
    this.desk = desk;
    this.capabilities = [...verbs2.keys()];
    this.commands = new Commands(desk, verbs2, (message) => this.send(message));
    this.subscriptions.push(
      this.lookout = new Lookout(() => {
        this.tries = 0;
        this.dialSoon(0);
      }),
      // The roots are said once in a connection.
      desk.roots.onChange(() => this.again()),
      this.onState((state) => {
        if (state.is === "connected") desk.voice.connected((message) => this.sendIfRead(message));
        else desk.voice.disconnected();
      })
    );
    this.dialSoon(0);
  }
  dispose() {
    this.isEnded = true;
    clearTimeout(this.timer);
    this.socket?.close(1e3);
    this.lost();
    vscode14.Disposable.from(...this.subscriptions).dispose();
    this.states.dispose();
    this.heard.dispose();
  }
  get state() {
    return this.now;
  }
  /** Says more in the registration; the connection is made anew if there is one. */
  registerWith(members) {
    Object.assign(this.additions, members);
    if (this.socket) this.again();
  }
  /** Listens for messages of a type that the line itself does not know. */
  onMessage(type, listener) {
    return this.heard.event((message) => {
      if (message.type === type) listener(message);
    });
  }
  /** Sends a message; `false` if there is no connection, or it is too large. */
  send(message) {
    if (this.now.is !== "connected" || this.socket?.readyState !== wrapper_default.OPEN) return false;
    const text2 = JSON.stringify(message);
    if (text2.length > MAX_SENT_BYTES / 2 && Buffer.byteLength(text2) > MAX_SENT_BYTES) {
      this.desk?.log.warn(`A message of ${Buffer.byteLength(text2)} bytes was not sent: ${message.type}`);
      return false;
    }
    this.socket.send(text2);
    return true;
  }
  /** The same of what may be lost: not if the daemon does not read. */
  sendIfRead(message) {
    return (this.socket?.bufferedAmount ?? 0) <= MAX_UNSENT_BYTES && this.send(message);
  }
  /** Makes the connection anew. */
  again() {
    this.socket?.close(1e3);
    this.lost();
    this.dialSoon(0);
  }
  dialSoon(afterMs) {
    if (this.isEnded || this.now.is === "connected") return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.dial(), afterMs);
  }
  waitMs() {
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.tries, LONGEST_WAIT_MS);
    this.tries = Math.min(this.tries + 1, 16);
    return wait * (0.75 + Math.random() * 0.5);
  }
  async dial() {
    if (this.isDialling || this.isEnded || this.socket) return;
    this.isDialling = true;
    try {
      const found3 = await find();
      if (!found3 || this.isEnded) return;
      this.lookout?.follow();
      this.tell({ is: "connecting" });
      const socket = await this.open(found3);
      if (this.isEnded) return socket.terminate();
      this.socket = socket;
      this.attend(socket);
    } catch (error) {
      this.desk?.log.debug(`No connection: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.isDialling = false;
      if (!this.socket) {
        this.tell({ is: "off" });
        this.dialSoon(this.waitMs());
      }
    }
  }
  /** Dials by the socket, which only the daemon of this user can have made, and by port where that cannot be reached. */
  async open(found3) {
    const path = `/plugin/${this.self.pluginId}`;
    const byPort = () => this.openAt(`ws://127.0.0.1:${found3.port}${path}`, found3.token);
    if (!found3.socket) return await byPort();
    return await this.openAt(`ws+unix:${found3.socket}:${path}`, found3.token).catch(byPort);
  }
  openAt(address, token) {
    const socket = new wrapper_default(address, {
      headers: { Authorization: `Bearer ${token}` },
      handshakeTimeout: DIAL_WITHIN_MS,
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false
    });
    return new Promise((opened2, failed) => {
      socket.once("open", () => opened2(socket));
      socket.once("error", failed);
    });
  }
  attend(socket) {
    const late = setTimeout(() => socket.terminate(), REGISTERED_WITHIN_MS);
    socket.on("message", (data) => {
      if (socket !== this.socket) return;
      const message = parsed(String(data));
      if (message?.type === "registered") clearTimeout(late);
      if (message) this.take(message);
    });
    socket.on("error", (error) => this.desk?.log.debug(`The connection failed: ${error.message}`));
    socket.on("close", (code) => {
      clearTimeout(late);
      if (socket !== this.socket) return;
      this.desk?.log.info(`The connection has ended (${code})`);
      this.lost();
      this.dialSoon(this.waitMs());
    });
    socket.send(JSON.stringify(this.registration()));
  }
  registration() {
    return {
      type: "register",
      protocol: PROTOCOL,
      instance_id: this.self.instanceId,
      kind: this.self.kind,
      version: this.self.version,
      ui: true,
      pid: process.pid,
      started_at_ms: this.self.startedAtMs,
      roots: [...this.desk?.roots.all ?? []],
      capabilities: [...this.capabilities],
      ...this.additions
    };
  }
  take(message) {
    const known = message;
    switch (known.type) {
      case "registered":
        return this.registered(known);
      case "cmd":
        return this.commands?.take(known);
      case "cancel":
        return this.commands?.cancel(known.id);
      case "ping":
        return void this.pong(known.id);
      case "get_state":
        return this.desk?.voice.tellState();
      case "error":
        return this.desk?.log.warn(`Prism: ${known.error.code}: ${known.error.message}`);
      default:
        return this.heard.fire(message);
    }
  }
  registered(message) {
    this.tries = 0;
    this.desk?.log.info(`Connected to Prism ${message.bridge_version} as ${message.assigned_id}`);
    this.tell({ is: "connected", name: message.assigned_id, version: message.bridge_version });
  }
  async pong(id) {
    const socket = this.socket;
    const ui = await isWindowAlive();
    if (socket === this.socket) this.send({ type: "pong", id, ui });
  }
  /** Ends all that hung on the connection. */
  lost() {
    this.socket = void 0;
    this.commands?.end();
    this.tell({ is: "off" });
  }
  tell(state) {
    if (this.now.is === state.is && state.is !== "connected") return;
    this.now = state;
    this.states.fire(state);
  }
};
function parsed(text2) {
  try {
    const message = JSON.parse(text2);
    const type = message?.type;
    return typeof type === "string" ? message : void 0;
  } catch {
    return void 0;
  }
}

// src/mirror.ts
var MAX_EDITS = 32;
var MAX_EDIT_CHARACTERS = 8 << 10;
var MAX_CHARACTERS = 6 << 20;
var Mirror = class {
  constructor(texts2) {
    this.texts = texts2;
  }
  texts;
  told = /* @__PURE__ */ new Map();
  /** All that is open. */
  state() {
    this.told.clear();
    let left2 = MAX_CHARACTERS;
    return this.texts.all().map((text2) => {
      const { path, version, isDirty } = text2;
      const content = isDirty ? text2.document.getText() : "";
      const isKnown = isDirty && content.length <= left2;
      if (isKnown) left2 -= content.length;
      this.told.set(path, { version, isDirty, isKnown });
      return { path, version, is_dirty: isDirty, ...isKnown ? { text: content } : {} };
    });
  }
  /** What is told of a change. */
  changed({ text: text2, base, edits, by, reason }) {
    const before = this.told.get(text2.path);
    const length = edits.reduce((sum, edit) => sum + edit.newText.length, 0);
    const isShort = base !== void 0 && edits.length <= MAX_EDITS && length <= MAX_EDIT_CHARACTERS && isInOrder(edits);
    const data = { version: text2.version, is_dirty: text2.isDirty, reason };
    if (by !== void 0) data["by"] = by;
    if (isShort) {
      data["base_version"] = base;
      data["edits"] = edits.map(({ range, newText }) => ({ range: toldSpan(range), new_text: newText }));
    }
    const isFollowed = isShort && before?.isKnown === true && before.version === base;
    const isKnown = this.add(data, text2, isFollowed);
    this.told.set(text2.path, { version: text2.version, isDirty: text2.isDirty, isKnown });
    return data;
  }
  /** What is told of a text that became unsaved or saved without another change; `undefined` if that is known. */
  dirtied(text2) {
    if ((this.told.get(text2.path)?.isDirty ?? false) === text2.isDirty) return void 0;
    const data = { version: text2.version, is_dirty: text2.isDirty, reason: "edit" };
    const isKnown = this.add(data, text2, false);
    this.told.set(text2.path, { version: text2.version, isDirty: text2.isDirty, isKnown });
    return data;
  }
  saved(text2) {
    this.told.set(text2.path, { version: text2.version, isDirty: text2.isDirty, isKnown: false });
  }
  closed(path) {
    this.told.delete(path);
  }
  /** Adds the whole text where the daemon needs it. Returns whether it knows the text then. */
  add(data, text2, isFollowed) {
    if (!text2.isDirty) return false;
    if (isFollowed) return true;
    const content = text2.document.getText();
    if (content.length > MAX_CHARACTERS) return false;
    data["text"] = content;
    return true;
  }
};
function isInOrder(edits) {
  return edits.every((edit, i) => {
    const next = edits[i + 1];
    if (!next) return true;
    const [end, start] = [next.range.end, edit.range.start];
    return end.line < start.line || end.line === start.line && end.character <= start.character;
  });
}

// src/person/index.ts
var vscode25 = __toESM(require("vscode"));

// src/person/ask.ts
var vscode19 = __toESM(require("vscode"));

// src/person/board.ts
var vscode15 = __toESM(require("vscode"));

// src/person/views.ts
var import_node_crypto2 = require("node:crypto");
var NOTHING = { requests: [], confirmations: [], grants: [], configs: [] };
function readSnapshot(message) {
  const now = Date.now();
  return {
    requests: objects(message["requests"]).map(request),
    confirmations: objects(message["confirmations"]).map(confirmation),
    grants: objects(message["grants"]).map((view) => grant(view, now)),
    configs: objects(message["configs"]).map(config)
  };
}
function waiting(snapshot) {
  return [...snapshot.requests, ...snapshot.confirmations].sort((a, b) => a.createdAt - b.createdAt);
}
function keyOf2(one) {
  return one.kind === "request" ? one.id : `${one.id} ${one.digest}`;
}
function request(view) {
  const asker = object(view["asker"]);
  const ways = { http: "the HTTP API", cli: "the command line", mcp: "an MCP client" };
  return {
    kind: "request",
    id: text(view["request_id"]),
    agent: text(view["agent_id"]),
    scopes: texts(view["scopes"]),
    newScopes: texts(view["new_scopes"]),
    roots: texts(view["roots"]),
    newRoots: texts(view["new_roots"]),
    reason: text(view["reason"]),
    createdAt: moment(view["created_at"]),
    expiresAt: moment(view["expires_at"]),
    seconds: number(view["ttl_seconds"]),
    asker: text(asker["client"]) || (ways[text(asker["via"])] ?? "a client that does not say which")
  };
}
function confirmation(view) {
  const shown2 = object(view["shown"]);
  const inner = shown2["shown"] === void 0 ? shown2 : object(shown2["shown"]);
  const kind = text(view["kind"]);
  return {
    kind: "confirmation",
    id: text(view["confirmation_id"]),
    agent: text(view["agent_id"]),
    session: text(view["session_id"]) || void 0,
    digest: text(view["digest"]),
    what: kind === "action" ? text(inner["kind"]) : kind,
    shown: inner,
    isCut: view["is_cut"] === true,
    createdAt: moment(view["created_at"]),
    expiresAt: moment(view["expires_at"])
  };
}
function grant(view, now) {
  const left2 = view["expires_in_ms"];
  return {
    kind: "grant",
    id: text(view["session_id"]),
    request: text(view["request_id"]) || void 0,
    parent: text(view["parent"]) || void 0,
    agent: text(view["agent_id"]),
    scopes: texts(view["allowed_scopes"]),
    roots: texts(view["roots"]),
    expiresAt: typeof left2 === "number" ? now + left2 : moment(view["expires_at"]),
    confirmsChanges: view["confirm_changes"] === true,
    sockets: number(view["sockets"]),
    actions: number(view["actions"]),
    last: objects(view["last_actions"]).map((action) => ({
      at: moment(action["at"]),
      action: text(action["action"]),
      about: text(action["about"]),
      result: text(action["result"])
    }))
  };
}
function config(view) {
  const [path, why, unified2] = [text(view["path"]), text(view["why"]), text(view["unified"])];
  const id = (0, import_node_crypto2.createHash)("sha256").update(JSON.stringify([path, why, unified2])).digest("hex").slice(0, 32);
  return { id, path, why, fix: text(view["fix"]), unified: unified2 };
}
function object(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
function text(value) {
  return typeof value === "string" ? value : "";
}
function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
function texts(value) {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
function objects(value) {
  return Array.isArray(value) ? value.map(object) : [];
}
function moment(value) {
  return Date.parse(text(value)) || 0;
}

// src/person/words.ts
var SCOPES = {
  "read:files": "read files",
  "write:files": "change files",
  "create:files": "create files",
  "delete:files": "delete files; each time you are asked",
  "rename:files": "rename and move files",
  "search:files": "find files by their names",
  "read:buffers": "see what is open in the editor",
  "edit:buffers": "edit what is open in the editor",
  "manage:buffers": "open, switch and close editors",
  "split:panes": "split the editor's panes",
  "manage:tabs": "arrange the editor's tabs",
  "analyze:syntax": "parse code",
  "detect:errors": "see errors and warnings in code",
  "suggest:completion": "ask for code completions",
  "format:code": "format code",
  "navigate:symbols": "look up definitions and references",
  "explore:project": "list the project's folders and files",
  "manage:workspace": "see and change the workspace's settings",
  "watch:changes": "be told when files change",
  "build:project": "build the project, which runs its build scripts",
  "exec:terminal": "use a terminal; each command is shown to you first",
  "run:commands": "run commands; each is shown to you first",
  "debug:session": "run the project under a debugger",
  "test:code": "run the project's tests, which runs its code",
  "git:status": "see the state of the repository",
  "git:commit": "stage and commit changes",
  "git:branch": "create and switch branches",
  "view:diffs": "see what has changed in the repository",
  "search:content": "search in a file",
  "replace:text": "replace text across files",
  "regex:operations": "search with regular expressions",
  "search:project": "search in the whole project",
  "sync:cursor": "see and move the cursor",
  "sync:selection": "see what is selected",
  "sync:viewport": "see and scroll what is in view",
  "monitor:state": "follow what happens in the editor",
  "code:lens": "read the notes the editor shows in code",
  "quick:fixes": "apply the editor's quick fixes",
  "refactor:code": "rename symbols and refactor across files",
  "manage:plugins": "manage the editor's plugins; each time you are asked",
  "network:all": "let what it runs reach the network, and the programs on this computer"
};
var RISKY = /* @__PURE__ */ new Set([
  "delete:files",
  "build:project",
  "exec:terminal",
  "run:commands",
  "debug:session",
  "test:code",
  "manage:plugins",
  "network:all"
]);
function scopeInWords(scope) {
  return SCOPES[scope] ?? scope;
}
function scopeInShort(scope) {
  return scopeInWords(scope).split(/[;,] /)[0] ?? scope;
}
function isRisky(scope) {
  return RISKY.has(scope) || SCOPES[scope] === void 0;
}
function riskyFirst(scopes) {
  return [...scopes].sort((a, b) => Number(isRisky(b)) - Number(isRisky(a)));
}
function span(seconds) {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds >= 60 && seconds % 60 === 0) return `${seconds / 60} min`;
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${seconds} s`;
}
function left(until, now) {
  return until > now ? `${remaining(until, now)} left` : "over";
}
function remaining(until, now) {
  const seconds = Math.max(0, Math.ceil((until - now) / 1e3));
  if (seconds < 120) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
}
function ago(at2, now) {
  const seconds = Math.floor((now - at2) / 1e3);
  if (seconds < 3) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}
function count(number2, one) {
  return number2 === 1 ? `1 ${one}` : `${number2} ${one}s`;
}
var UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;
function visible(text2) {
  const said = text2.replace(/\s*\r?\n\s*/g, " \u23CE ").replace(/\t/g, " ").replace(UNSEEN, (one) => {
    return `[U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
  });
  return said.trim();
}
function visibleLines(text2) {
  const lines = text2.split(/\r?\n/).map((line) => line.split("	").map(visibleEnds).join("	"));
  return lines.join("\n");
}
function label(text2) {
  return visible(text2).replaceAll("$(", "$\u2060(");
}
function escaped(text2) {
  return visible(text2).replace(/[\\`*_{}[\]()#+\-.!|<>~$&]/g, "\\$&");
}
function cut(text2, most) {
  return text2.length <= most ? text2 : `${text2.slice(0, most - 1)}\u2026`;
}
function visibleEnds(part) {
  const spaces = /^(\s*)(.*?)(\s*)$/su.exec(part);
  return spaces ? `${spaces[1]}${visible(spaces[2] ?? "")}${spaces[3]}` : visible(part);
}

// src/person/board.ts
var PATIENCE_MS2 = 15e3;
var MAX_WAITING2 = 64;
var MAX_NAMES = 256;
var Objection = class extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
  code;
};
var Board = class {
  constructor(line) {
    this.line = line;
    this.connected = line.state.is === "connected";
    this.parts = [
      this.changed,
      line.onMessage("desk", (message) => this.show(readSnapshot(object(message)))),
      line.onMessage("decided", (message) => this.answered(object(message))),
      line.onState(() => this.stateChanged())
    ];
  }
  line;
  shown = NOTHING;
  connected = false;
  told = false;
  said = 0;
  names = /* @__PURE__ */ new Map();
  waiting = /* @__PURE__ */ new Map();
  changed = new vscode15.EventEmitter();
  parts;
  /** After each change, and when the connection comes or goes. */
  onChange = this.changed.event;
  get snapshot() {
    return this.shown;
  }
  get isConnected() {
    return this.connected;
  }
  /** Whether the daemon has told what there is. One that lets no editor decide tells nothing. */
  get isTold() {
    return this.told;
  }
  /** Whose session it is; a grant may be over and its edits not. */
  nameOf(session) {
    return this.names.get(session) ?? "an agent";
  }
  allow(request2, narrowed) {
    return this.say({
      type: "decide",
      request_id: request2.id,
      approve: true,
      ...narrowed.scopes && { approved_scopes: narrowed.scopes },
      ...narrowed.roots && { approved_roots: narrowed.roots },
      ...narrowed.seconds !== void 0 && { ttl_seconds: narrowed.seconds },
      ...narrowed.confirmChanges !== void 0 && { confirm_changes: narrowed.confirmChanges }
    });
  }
  deny(request2, reason) {
    return this.say({ type: "decide", request_id: request2.id, approve: false, ...reason && { reason } });
  }
  /** The digest is that of the view: of what the person saw, whatever the daemon has by now. */
  confirm(view, approve, reason) {
    const { id, digest } = view;
    return this.say({ type: "decide", confirmation_id: id, digest, approve, ...reason && { reason } });
  }
  revoke(session) {
    return this.say({ type: "revoke", session_id: session });
  }
  dispose() {
    this.forget(new Objection("lost", "the window closes"));
    for (const part of this.parts) part.dispose();
  }
  async say(word) {
    if (!this.connected) throw new Objection("lost", "Prism's daemon cannot be reached just now");
    if (this.waiting.size >= MAX_WAITING2) throw new Objection("too_many", "too much waits for the daemon; try again");
    const id = ++this.said;
    const told6 = new Promise((done) => {
      this.waiting.set(id, done);
      this.line.send({ ...word, id });
    });
    const answer = await within(PATIENCE_MS2, told6);
    this.waiting.delete(id);
    if (!answer) throw new Objection("timed_out", "the daemon did not answer; look at it again");
    if (answer instanceof Objection) throw answer;
    if (answer["status"] !== "ok") {
      const error = object(answer["error"]);
      throw new Objection(text(error["code"]) || "failed", text(error["message"]) || "the daemon refused it");
    }
  }
  answered(message) {
    const id = message["id"];
    if (typeof id === "number") this.waiting.get(id)?.(message);
  }
  show(snapshot) {
    this.shown = snapshot;
    this.told = true;
    for (const { id, agent } of snapshot.grants) this.names.set(id, visible(agent));
    for (const id of [...this.names.keys()].slice(0, -MAX_NAMES)) this.names.delete(id);
    this.changed.fire();
  }
  stateChanged() {
    const connected = this.line.state.is === "connected";
    if (connected === this.connected) return;
    this.connected = connected;
    if (!connected) {
      this.forget(new Objection("lost", "the connection was lost; look at it again when Prism is back"));
      this.shown = NOTHING;
      this.told = false;
    }
    this.changed.fire();
  }
  forget(why) {
    for (const done of this.waiting.values()) done(why);
    this.waiting.clear();
  }
};

// src/person/confirmation.ts
var vscode18 = __toESM(require("vscode"));

// src/person/diff.ts
var import_promises3 = require("node:fs/promises");
var import_node_path = require("node:path");
var vscode16 = __toESM(require("vscode"));

// src/person/unified.ts
function applied(before, unified2) {
  const hunks = hunksOf(unified2);
  if (hunks === void 0) return void 0;
  const lines = linesOf(before);
  const made4 = [];
  let at2 = 0;
  for (const hunk of hunks) {
    const start = hunk.before.length === 0 ? hunk.start : hunk.start - 1;
    if (start < at2 || start > lines.length) return void 0;
    made4.push(...lines.slice(at2, start));
    if (hunk.before.some((line, i) => lines[start + i] !== line)) return void 0;
    made4.push(...hunk.after);
    at2 = start + hunk.before.length;
  }
  return made4.concat(lines.slice(at2)).join("");
}
function placesOf(unified2) {
  const hunks = hunksOf(unified2);
  if (hunks === void 0) return void 0;
  const join8 = (side) => {
    return hunks.map((hunk) => `@@ line ${hunk.start} @@
${side(hunk).join("")}`).join("\n");
  };
  return { before: join8((hunk) => hunk.before), after: join8((hunk) => hunk.after) };
}
function hunksOf(unified2) {
  const lines = linesOf(unified2);
  const hunks = [];
  let i = lines.findIndex((line) => line.startsWith("@@ "));
  if (i < 0) return /^--- .*\n\+\+\+ .*\n$/.test(unified2) ? [] : void 0;
  while (i < lines.length) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(lines[i] ?? "");
    if (!head) return void 0;
    let [old, fresh] = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
    const hunk = { start: Number(head[1]), before: [], after: [] };
    let last = [];
    for (i += 1; i < lines.length && (old > 0 || fresh > 0 || lines[i]?.startsWith("\\")); i += 1) {
      const line = lines[i] ?? "";
      const body = line.slice(1);
      switch (line[0]) {
        case " ":
          last = [hunk.before, hunk.after];
          old -= 1;
          fresh -= 1;
          break;
        case "-":
          last = [hunk.before];
          old -= 1;
          break;
        case "+":
          last = [hunk.after];
          fresh -= 1;
          break;
        case "\\":
          for (const side of last) side.push((side.pop() ?? "").replace(/\r?\n$/, ""));
          continue;
        default:
          return void 0;
      }
      for (const side of last) side.push(body);
    }
    if (old !== 0 || fresh !== 0) return void 0;
    hunks.push(hunk);
  }
  return hunks;
}
function linesOf(text2) {
  return text2.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

// src/person/diff.ts
var SCHEME = "prism-diff";
var MAX_WHOLE_BYTES = 8 * 1024 * 1024;
var COVERED = 8;
var LANGUAGE = "prism-shown";
var Shelf = class {
  texts = /* @__PURE__ */ new Map();
  said = new vscode16.EventEmitter();
  commands = ["allow", "deny", "ask"].map(
    (word) => vscode16.commands.registerCommand(`prism.shown.${word}`, () => this.said.fire(word))
  );
  registered = vscode16.workspace.registerTextDocumentContentProvider(SCHEME, this);
  provideTextDocumentContent(uri) {
    return this.texts.get(uri.toString()) ?? "This is over.\n";
  }
  /** Opens a change in a diff editor. `about` is the id under which it is closed again. */
  async showChange(change2, about) {
    const name = (0, import_node_path.basename)(change2.path);
    const before = await textBefore(change2);
    const after = before === void 0 ? void 0 : applied(before, change2.unified);
    if (before !== void 0 && after !== void 0) {
      await this.showTwo(
        `${name}: what ${change2.agent} wants to change`,
        { name, text: before },
        { name, text: after },
        about
      );
      return;
    }
    const parts = placesOf(change2.unified);
    if (parts === void 0) {
      const head = [`${change2.agent} wants to change ${change2.path}`];
      await this.showText(`${name}.diff`, underQuestion(head, change2.unified), about);
      return;
    }
    const title = `${name}: what ${change2.agent} wants to change (only these places)`;
    await this.showTwo(title, { name, text: parts.before }, { name, text: parts.after }, about);
  }
  async showTwo(title, before, after, about) {
    const left2 = this.put(about, "before", before);
    const right = this.put(about, "after", after);
    const options = { preview: true, preserveFocus: true };
    await vscode16.commands.executeCommand("vscode.diff", left2, right, title, options);
  }
  async showText(name, text2, about) {
    const document = await vscode16.workspace.openTextDocument(this.put(about, "all", { name, text: text2 }));
    if (!name.endsWith(".diff")) await vscode16.languages.setTextDocumentLanguage(document, LANGUAGE);
    await vscode16.window.showTextDocument(document, { preview: true, preserveFocus: true });
  }
  /**
   * Lets the person look at what is open about it, with nothing above it. They go on by the buttons of the editor's title;
   * `undefined` if they closed it, or if it is gone.
   */
  async look(about, kind, gone) {
    await vscode16.commands.executeCommand("setContext", "prism.looking", kind);
    await vscode16.commands.executeCommand("workbench.action.focusActiveEditorGroup");
    const parts = [];
    try {
      return await new Promise((done) => {
        parts.push(
          this.said.event(done),
          gone.onCancellationRequested(() => done(void 0)),
          vscode16.window.tabGroups.onDidChangeTabs(() => {
            if (tabsOf(about).length === 0) done(void 0);
          })
        );
        if (gone.isCancellationRequested) done(void 0);
      });
    } finally {
      vscode16.Disposable.from(...parts).dispose();
      await vscode16.commands.executeCommand("setContext", "prism.looking", void 0);
    }
  }
  /** Leads whoever looks at something back to the question. */
  back() {
    this.said.fire("ask");
  }
  /** Closes all that was opened about it. */
  async close(about) {
    const open = tabsOf(about);
    for (const key of [...this.texts.keys()]) {
      if (isAbout(vscode16.Uri.parse(key), about)) this.texts.delete(key);
    }
    if (open.length > 0) await vscode16.window.tabGroups.close(open, true);
  }
  dispose() {
    vscode16.Disposable.from(this.registered, this.said, ...this.commands).dispose();
    this.texts.clear();
  }
  put(about, side, { name, text: text2 }) {
    const uri = vscode16.Uri.from({
      scheme: SCHEME,
      authority: authority(about),
      path: `/${side}/${name.replaceAll("/", "\u2215")}`
    });
    this.texts.set(uri.toString(), text2);
    return uri;
  }
};
function underQuestion(head, text2) {
  const rest = Array(Math.max(0, COVERED - head.length)).fill("");
  return [...head, ...rest, "\u2500".repeat(72), text2].join("\n");
}
function tabsOf(about) {
  const tabs = vscode16.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => {
    if (input instanceof vscode16.TabInputTextDiff) return isAbout(input.modified, about);
    return input instanceof vscode16.TabInputText && isAbout(input.uri, about);
  });
}
function isAbout(uri, about) {
  return uri.scheme === SCHEME && uri.authority === authority(about);
}
function authority(about) {
  return about.toLowerCase().replace(/[^a-z0-9-]/g, "-");
}
async function textBefore({ path, digest }) {
  if (digest === "") return "";
  const open = vscode16.workspace.textDocuments.find(({ uri }) => uri.scheme === "file" && uri.fsPath === path);
  const texts2 = [async () => open?.getText(), async () => (0, import_promises3.readFile)(path, "utf8").catch(() => void 0)];
  for (const read2 of texts2) {
    const text2 = await read2();
    if (text2 === void 0 || text2.length > MAX_WHOLE_BYTES) continue;
    if (digestOf(text2) === digest) return text2;
  }
  return void 0;
}

// src/person/pick.ts
var vscode17 = __toESM(require("vscode"));
var DEAF_MS = 500;
function ask2(question, gone) {
  const pick = vscode17.window.createQuickPick();
  pick.title = question.title;
  pick.placeholder = question.hint;
  pick.ignoreFocusOut = true;
  pick.items = question.rows.map(item);
  let deafUntil = Date.now() + DEAF_MS;
  pick.onDidChangeValue((typed2) => {
    if (typed2 === "") return;
    deafUntil = Date.now() + DEAF_MS;
    pick.value = "";
  });
  return shown(pick, gone, (done) => {
    pick.onDidAccept(() => {
      const row = pick.selectedItems[0]?.row ?? pick.activeItems[0]?.row;
      if (row?.value === void 0) return;
      if (row.weighs && Date.now() < deafUntil) return;
      done(row.value);
    });
  });
}
function askWhich(question, chosen2, gone) {
  const pick = vscode17.window.createQuickPick();
  pick.title = question.title;
  pick.placeholder = question.hint;
  pick.ignoreFocusOut = true;
  pick.canSelectMany = true;
  pick.matchOnDescription = true;
  pick.items = question.rows.map(item);
  pick.selectedItems = pick.items.filter((one) => one.row?.value !== void 0 && chosen2(one.row.value));
  return shown(pick, gone, (done) => {
    pick.onDidAccept(
      () => done(pick.selectedItems.flatMap((one) => one.row?.value === void 0 ? [] : [one.row.value]))
    );
  });
}
function askText(title, hint, gone) {
  const input = vscode17.window.createInputBox();
  input.title = title;
  input.placeholder = hint;
  input.ignoreFocusOut = true;
  return shown(input, gone, (done) => {
    input.onDidAccept(() => done(input.value));
  });
}
function item(row) {
  if ("heading" in row) return { label: row.heading, kind: vscode17.QuickPickItemKind.Separator };
  return {
    label: row.label,
    alwaysShow: true,
    row,
    ...row.icon && { iconPath: new vscode17.ThemeIcon(row.icon) },
    ...row.description && { description: row.description },
    ...row.detail && { detail: row.detail }
  };
}
function shown(input, gone, listen2) {
  return new Promise((resolve2) => {
    const done = (value) => {
      resolve2(value);
      cancelled.dispose();
      input.dispose();
    };
    const cancelled = gone.onCancellationRequested(() => done(void 0));
    listen2(done);
    input.onDidHide(() => done(void 0));
    if (gone.isCancellationRequested) done(void 0);
    else input.show();
  });
}

// src/person/confirmation.ts
var ROW = 96;
async function askAboutConfirmation(view, board, shelf, gone) {
  const step = picture(view);
  const look = () => show2(view, step, shelf);
  const decide = async (allows, reason) => {
    await board.confirm(view, allows, reason);
    return allows ? `${view.agent} may ${step.title}` : `${view.agent} was denied`;
  };
  if (step.isLong) await look();
  for (; ; ) {
    const title = `${label(view.agent)} wants to ${step.title}`;
    const hint = "Nothing happens until you decide. Esc puts it aside.";
    switch (await ask2({ title, hint, rows: form(view, step) }, gone)) {
      case void 0:
        return void 0;
      case "look":
        await look();
        switch (await shelf.look(view.id, view.isCut ? "request" : "confirmation", gone)) {
          case void 0:
            return void 0;
          case "allow":
            return decide(true);
          case "deny":
            return decide(false);
          case "ask":
        }
        break;
      case "console":
        await vscode18.commands.executeCommand("prism.openConsole");
        return void 0;
      case "allow":
        return decide(true);
      case "deny":
        return decide(false);
      case "deny why": {
        const reason = await askText(`Why not? ${label(view.agent)} is told.`, "For example: keep that file", gone);
        if (reason === void 0) break;
        return decide(false, reason);
      }
    }
    if (gone.isCancellationRequested) return void 0;
  }
}
function inShort(view) {
  const step = picture(view);
  return `${step.title}: ${step.line}`;
}
function picture(view) {
  const { shown: shown2 } = view;
  switch (view.what) {
    case "command": {
      const command = commandOf(shown2["command"]);
      const environment = Object.entries(object(shown2["env"])).map(([name, value]) => `${name}=${text(value)}`);
      const facts = [
        `in ${text(shown2["cwd"])}`,
        typeof shown2["command"] === "string" ? "run by sh -c" : "run without a shell",
        ...environment.length > 0 ? [`with ${environment.join(" ")}`] : [],
        `at most ${span(Math.ceil(number(shown2["timeout_ms"]) / 1e3))}`
      ];
      return made("run a command", "terminal", command, facts);
    }
    case "diff": {
      const unified2 = text(shown2["unified"]).split("\n");
      const added = unified2.filter((line) => line.startsWith("+") && !line.startsWith("+++")).length;
      const removed = unified2.filter((line) => line.startsWith("-") && !line.startsWith("---")).length;
      const isNew = shown2["old_text_digest"] === null || shown2["old_text_digest"] === void 0;
      const facts = [isNew ? "a new file" : "a difference", `+${added} \u2212${removed} lines`];
      return { ...made(isNew ? "create a file" : "change a file", "diff", text(shown2["path"]), facts), isLong: true };
    }
    case "delete":
      return made("delete", "trash", text(shown2["path"]), [
        `a ${text(shown2["what"])} of ${number(shown2["bytes"])} bytes`
      ]);
    case "rename": {
      const facts = shown2["replaces"] === true ? ["IT REPLACES WHAT IS THERE NOW"] : [];
      return made("rename", "arrow-right", `${text(shown2["from"])} \u2192 ${text(shown2["to"])}`, facts);
    }
    case "tool":
      return {
        ...made("call a tool", "tools", toolOf(shown2), [`rule ${text(shown2["rule"])}`]),
        full: pretty(shown2),
        isLong: true
      };
    case "definition":
      return { ...made("use a tool that has changed", "tools", toolOf(shown2), []), full: pretty(shown2), isLong: true };
    case "plain": {
      const lines = texts(shown2["lines"]);
      const whole = made("do this", "play", text(shown2["title"]), lines.slice(0, 1));
      return {
        ...whole,
        full: [text(shown2["title"]), "", ...lines].join("\n"),
        isLong: whole.isLong || lines.length > 1
      };
    }
    default:
      return { ...made("do this", "play", "see the editor below", []), full: pretty(shown2), isLong: true };
  }
}
function made(title, icon, line, facts) {
  const isLong = line.length > ROW || /[\r\n\t]/.test(line) || facts.join(" \xB7 ").length > ROW;
  return {
    title,
    icon,
    line: label(line),
    facts: label(facts.join(" \xB7 ")),
    full: [line, "", ...facts].join("\n"),
    isLong
  };
}
function form(view, step) {
  const rows = [
    {
      label: cut(step.line, ROW),
      icon: step.icon,
      detail: cut(step.facts, ROW) || "Enter shows it in an editor",
      description: step.isLong ? "Enter: look at it without this question" : "",
      value: "look"
    },
    { heading: `Your decision \xB7 ${left(view.expiresAt, Date.now())}` }
  ];
  if (view.isCut) {
    rows.push({
      label: "It is too long to be shown here: open the console",
      icon: "link-external",
      description: "it can be allowed where all of it is seen",
      value: "console"
    });
  } else {
    rows.push({
      label: view.what === "definition" ? "Accept the change" : "Allow once",
      icon: "check",
      value: "allow",
      weighs: true
    });
  }
  rows.push(
    { label: "Deny", icon: "circle-slash", value: "deny", weighs: true },
    { label: "Deny, and say why\u2026", icon: "comment-discussion", value: "deny why" }
  );
  return rows;
}
async function show2(view, step, shelf) {
  if (view.what === "diff" && !view.isCut) {
    const { path, old_text_digest, unified: unified2 } = view.shown;
    const about = { path: text(path), digest: text(old_text_digest), unified: text(unified2), agent: view.agent };
    await shelf.showChange(about, view.id);
    return;
  }
  if (view.what === "definition") {
    const [before, after] = [definition(view.shown["before"]), definition(view.shown["after"])];
    if (before !== "" || after !== "") {
      await shelf.showTwo(
        `${toolOf(view.shown)}: what has changed`,
        { name: "before.json", text: before },
        { name: "after.json", text: after },
        view.id
      );
      return;
    }
  }
  const extension2 = view.what === "diff" || /^@@ -\d/m.test(step.full) ? "diff" : "txt";
  const body = view.what === "diff" ? text(view.shown["unified"]) : step.full;
  const head = [
    `${label(view.agent)} wants to ${step.title}. Nothing happens until you decide:`,
    "in the question, or by the buttons at the top right of this editor.",
    ...view.isCut ? ["", "THIS IS NOT ALL OF IT: it was too long."] : []
  ];
  await shelf.showText(`What ${view.agent} wants to do.${extension2}`, underQuestion(head, visibleLines(body)), view.id);
}
function commandOf(command) {
  if (typeof command === "string") return command;
  return texts(command).map((word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
}
function toolOf(shown2) {
  return [text(shown2["destination"]), text(shown2["tool"])].filter(Boolean).join(" \xB7 ");
}
function definition(value) {
  if (value === void 0 || value === null) return "";
  if (typeof value !== "string") return pretty(value);
  try {
    return pretty(JSON.parse(value));
  } catch {
    return value;
  }
}
function pretty(value) {
  return JSON.stringify(value, void 0, 2);
}

// src/person/request.ts
var TIMES_S = [5 * 60, 15 * 60, 60 * 60, 8 * 60 * 60];
var ROW2 = 96;
async function askAboutRequest(request2, board, shelf, gone) {
  let scopes = [...request2.scopes];
  let roots = [...request2.roots];
  let seconds = request2.seconds;
  for (; ; ) {
    const rows = form2(request2, scopes, roots, seconds);
    const title = `${label(request2.agent)} asks for access`;
    const step = await ask2(
      { title, hint: "Choose a row. Esc puts it aside; nothing is allowed by that.", rows },
      gone
    );
    switch (step) {
      case void 0:
        return void 0;
      case "look":
        await shelf.showText(`What ${request2.agent} asks for.txt`, inFull(request2), request2.id);
        if (await shelf.look(request2.id, "request", gone) === void 0) return void 0;
        break;
      case "scopes":
        scopes = await chooseScopes(request2, scopes, gone) ?? scopes;
        break;
      case "roots":
        roots = await chooseRoots(request2, roots, gone) ?? roots;
        break;
      case "time":
        seconds = await chooseTime(request2, gone) ?? seconds;
        break;
      case "allow":
      case "watch": {
        const narrowed = {
          ...scopes.length < request2.scopes.length && { scopes },
          ...roots.length < request2.roots.length && { roots },
          ...seconds !== request2.seconds && { seconds },
          ...step === "watch" && { confirmChanges: true }
        };
        await board.allow(request2, narrowed);
        return `${request2.agent} may work for ${span(seconds)}`;
      }
      case "deny":
        await board.deny(request2);
        return `${request2.agent} was denied`;
      case "deny why": {
        const reason = await askText(
          `Why not? ${label(request2.agent)} is told.`,
          "For example: use the staging copy",
          gone
        );
        if (reason === void 0) break;
        await board.deny(request2, reason);
        return `${request2.agent} was denied`;
      }
    }
    if (gone.isCancellationRequested) return void 0;
  }
}
function form2(request2, scopes, roots, seconds) {
  const now = Date.now();
  const risky = scopes.filter(isRisky);
  const fresh = scopes.filter((scope) => request2.newScopes.includes(scope));
  const less = (part, whole) => part < whole ? `${part} of ${whole}` : `all ${whole}`;
  const rows = [
    {
      label: cut(`\u201C${label(request2.reason)}\u201D`, ROW2),
      icon: "comment",
      detail: `Asked ${ago(request2.createdAt, now)} through ${label(request2.asker)}, expires in ${remaining(request2.expiresAt, now)}. Enter shows all of it.`,
      value: "look"
    },
    { heading: "Wants to" },
    {
      label: cut(riskyFirst(scopes).map(scopeInShort).join(", ") || "nothing", ROW2),
      icon: "key",
      description: `${less(scopes.length, request2.scopes.length)} \xB7 change\u2026`,
      ...fresh.length > 0 && {
        detail: cut(`New for this agent: ${riskyFirst(fresh).map(scopeInShort).join(", ")}`, ROW2)
      },
      value: "scopes"
    }
  ];
  if (risky.length > 0) {
    rows.push({ label: cut(`It can ${risky.map(scopeInShort).join(", ")}`, ROW2), icon: "warning", value: "scopes" });
  }
  rows.push({ heading: "Where" });
  for (const root of roots.slice(0, 3)) {
    const isNew = request2.newRoots.includes(root) ? "new for this agent" : "";
    const more = request2.roots.length > 1 ? `${less(roots.length, request2.roots.length)} \xB7 change\u2026` : "";
    const description = [isNew, more].filter(Boolean).join(" \xB7 ");
    const row = { label: cut(label(root), ROW2), icon: "folder", ...description && { description } };
    rows.push(request2.roots.length > 1 ? { ...row, value: "roots" } : row);
  }
  if (roots.length > 3) rows.push({ label: `and ${roots.length - 3} more`, icon: "folder", value: "roots" });
  rows.push(
    { heading: "How long" },
    {
      label: span(seconds),
      icon: "clock",
      description: `${seconds === request2.seconds ? "as asked" : "less than asked"} \xB7 change\u2026`,
      value: "time"
    },
    { heading: "Your decision" }
  );
  if (scopes.length > 0 && roots.length > 0) {
    const some = scopes.length < request2.scopes.length || roots.length < request2.roots.length;
    rows.push(
      { label: some ? "Allow this much" : "Allow", icon: "check", value: "allow", weighs: true },
      {
        label: "Allow, and confirm each change",
        icon: "checklist",
        description: "you see every change before it is made",
        value: "watch",
        weighs: true
      }
    );
  }
  rows.push(
    { label: "Deny", icon: "circle-slash", value: "deny", weighs: true },
    { label: "Deny, and say why\u2026", icon: "comment-discussion", value: "deny why" }
  );
  return rows;
}
async function chooseScopes(request2, chosen2, gone) {
  const rows = riskyFirst(request2.scopes).map((scope) => {
    const marks = [isRisky(scope) ? "can run or delete" : "", request2.newScopes.includes(scope) ? "new" : ""].filter(
      Boolean
    );
    return { label: scopeInWords(scope), description: [scope, ...marks].join(" \xB7 "), value: scope };
  });
  const title = `What may ${label(request2.agent)} do?`;
  return askWhich(
    { title, hint: "Click or Space takes one away; Enter goes on", rows },
    (one) => chosen2.includes(one),
    gone
  );
}
async function chooseRoots(request2, chosen2, gone) {
  const rows = request2.roots.map((root) => {
    return { label: label(root), value: root, ...request2.newRoots.includes(root) && { description: "new" } };
  });
  const title = `Where may ${label(request2.agent)} work?`;
  return askWhich(
    { title, hint: "Click or Space takes one away; Enter goes on", rows },
    (one) => chosen2.includes(one),
    gone
  );
}
async function chooseTime(request2, gone) {
  const times = [...TIMES_S.filter((time) => time < request2.seconds), request2.seconds];
  const rows = times.map((time) => {
    return { label: span(time), value: time, ...time === request2.seconds && { description: "as asked" } };
  });
  return ask2({ title: "For how long?", hint: "It ends by itself; you can end it before", rows }, gone);
}
function inFull(request2) {
  const scopes = riskyFirst(request2.scopes).map((scope) => {
    const marks = [isRisky(scope) ? "can run or delete" : "", request2.newScopes.includes(scope) ? "NEW" : ""].filter(
      Boolean
    );
    return `  ${scopeInWords(scope)}  (${[scope, ...marks].join(", ")})`;
  });
  const roots = request2.roots.map((root) => `  ${label(root)}${request2.newRoots.includes(root) ? "  (NEW)" : ""}`);
  return [
    `${label(request2.agent)} asks for access, through ${label(request2.asker)}.`,
    "",
    "Why, in its own words:",
    visibleLines(request2.reason).replace(/^/gm, "  "),
    "",
    `It wants to (${count(request2.scopes.length, "scope")}):`,
    ...scopes,
    "",
    "In:",
    ...roots,
    "",
    `For ${span(request2.seconds)}.`,
    "",
    "To decide: the button at the top right of this editor, or Prism in the status bar.",
    ""
  ].join("\n");
}

// src/person/ask.ts
var PAUSE_MS = 2e3;
var MAX_WAIT_MS = 2e4;
var TOLD_MS = 8e3;
var Asker = class {
  /** `folders` are those of this window, as the disk knows them. */
  constructor(board, folders, shelf, texts2, log) {
    this.board = board;
    this.folders = folders;
    this.shelf = shelf;
    this.log = log;
    this.pause = new Pause(texts2);
    this.changed = board.onChange(() => this.look());
  }
  board;
  folders;
  shelf;
  log;
  current;
  /** What the person has put aside, by its key; it is not asked again by itself. */
  aside = /* @__PURE__ */ new Set();
  pause;
  changed;
  isOver = false;
  /** Asks about it now, whatever was put aside. */
  show(one) {
    const key = keyOf2(one);
    if (this.current?.key === key) {
      this.shelf.back();
      return;
    }
    this.aside.delete(key);
    if (this.current) this.aside.add(this.current.key);
    this.current?.gone.cancel();
    void this.askAbout(one, false);
  }
  /** Whether it is asked in this window by itself. */
  isHere(one) {
    return placesOf2(one, this.board).some((place) => this.folders().some((folder) => touches(place, folder)));
  }
  dispose() {
    this.isOver = true;
    this.changed.dispose();
    this.current?.gone.cancel();
    this.pause.dispose();
  }
  /** Takes back what is decided, and asks what is next. */
  look() {
    if (this.isOver) return;
    const open = waiting(this.board.snapshot);
    const keys = new Set(open.map(keyOf2));
    if (this.current && !keys.has(this.current.key)) this.current.gone.cancel();
    if (this.current || !this.board.isTold) return;
    for (const key of this.aside) if (!keys.has(key)) this.aside.delete(key);
    const next = open.find((one) => !this.aside.has(keyOf2(one)) && this.isHere(one));
    if (next) void this.askAbout(next, true);
  }
  async askAbout(one, politely) {
    const current = { key: keyOf2(one), one, gone: new vscode19.CancellationTokenSource() };
    this.current = current;
    const gone = current.gone.token;
    let isAnswered = false;
    try {
      if (politely) await this.pause.come(gone);
      if (gone.isCancellationRequested) return;
      const decided = one.kind === "request" ? await askAboutRequest(one, this.board, this.shelf, gone) : await askAboutConfirmation(one, this.board, this.shelf, gone);
      isAnswered = decided !== void 0;
      if (decided !== void 0) tell(decided);
      if (isAnswered || !gone.isCancellationRequested) this.aside.add(current.key);
    } catch (error) {
      isAnswered = true;
      this.aside.add(current.key);
      const why = error instanceof Error ? error.message : String(error);
      this.log.warn(`the answer was not taken: ${why}`);
      if (error instanceof Objection && ["not_pending", "not_waiting", "lost"].includes(error.code)) tell(why);
      else void vscode19.window.showWarningMessage(`Prism did not take the answer: ${visible(why)}`);
    } finally {
      await this.shelf.close(one.id).then(void 0, (error) => this.log.warn(`a preview was not closed: ${String(error)}`));
      if (this.current === current) this.current = void 0;
      if (!isAnswered && !this.isOver && this.isGone(current.key)) tell(this.farewell(one));
      current.gone.dispose();
      if (!this.current) this.look();
    }
  }
  isGone(key) {
    return !waiting(this.board.snapshot).some((one) => keyOf2(one) === key);
  }
  /** What became of a question that was taken back, as far as it is known here. */
  farewell(one) {
    if (!this.board.isConnected) return "not connected, so nothing can be decided here";
    const granted = this.board.snapshot.grants.some((grant2) => one.kind === "request" && grant2.request === one.id);
    if (granted) return `${one.agent} was allowed elsewhere`;
    if (one.expiresAt > 0 && one.expiresAt <= Date.now()) return `what ${one.agent} asked has lapsed`;
    return `what ${one.agent} asked was answered elsewhere`;
  }
};
function placesOf2(one, board) {
  if (one.kind === "request") return one.roots;
  const { shown: shown2 } = one;
  const named = ["path", "cwd", "from", "to"].map((name) => text(shown2[name])).filter(Boolean);
  if (named.length > 0) return named;
  return board.snapshot.grants.find((grant2) => grant2.id === one.session)?.roots ?? [];
}
function touches(one, other) {
  const [a, b] = [`${one.replace(/\/+$/, "")}/`, `${other.replace(/\/+$/, "")}/`];
  return a.startsWith(b) || b.startsWith(a);
}
function tell(what) {
  vscode19.window.setStatusBarMessage(`Prism: ${visible(what)}`, TOLD_MS);
}
var Pause = class {
  typedAt = 0;
  typing;
  constructor(texts2) {
    const typed2 = () => {
      this.typedAt = Date.now();
    };
    this.typing = vscode19.Disposable.from(
      texts2.onChange(({ by, reason }) => {
        if (by === void 0 && reason === "edit") typed2();
      }),
      vscode19.window.onDidChangeTextEditorSelection(({ kind }) => {
        if (kind === vscode19.TextEditorSelectionChangeKind.Keyboard) typed2();
      })
    );
  }
  /** Waits until they have stopped for a moment. */
  async come(gone) {
    const latest = Date.now() + MAX_WAIT_MS;
    await vscode19.commands.executeCommand("setContext", "prism.asking", latest);
    while (!gone.isCancellationRequested) {
      const left2 = Math.min(this.typedAt + PAUSE_MS, latest) - Date.now();
      if (left2 <= 0) return;
      await once(gone.onCancellationRequested, () => true, left2);
    }
  }
  dispose() {
    this.typing.dispose();
  }
};

// src/person/commands.ts
var import_node_child_process = require("node:child_process");
var vscode22 = __toESM(require("vscode"));

// src/person/status.ts
var vscode21 = __toESM(require("vscode"));

// src/person/configs.ts
var import_node_path2 = require("node:path");
var vscode20 = __toESM(require("vscode"));
var ROW3 = 400;
var Configs = class {
  constructor(board, shelf, log) {
    this.board = board;
    this.shelf = shelf;
    this.log = log;
    this.changed = board.onChange(() => this.look());
  }
  board;
  shelf;
  log;
  /** By what they are about, also those that the person has put aside: each text is noticed once. */
  notices = /* @__PURE__ */ new Map();
  changed;
  /** Opens what is new in it. */
  async show(id) {
    const view = this.notices.get(id)?.view;
    if (!view) throw new Error("this config does not wait any more");
    const why = view.why.startsWith(view.path) ? [view.path, view.why.slice(view.path.length)] : [view.why];
    const head = [...why, `In a terminal: ${view.fix}`].map(visible);
    const text2 = [...head, "", visibleLines(view.unified)].join("\n");
    await this.shelf.showText(`${(0, import_node_path2.basename)(view.path)}.diff`, text2, view.id);
  }
  /** What to type about it. */
  fix(id) {
    const fix = this.notices.get(id)?.view.fix;
    if (!fix) throw new Error("this config does not wait any more");
    if (fix !== visible(fix)) throw new Error(`type it yourself, its name has letters that are not seen: ${visible(fix)}`);
    return fix;
  }
  dispose() {
    this.changed.dispose();
    for (const { gone } of this.notices.values()) gone.cancel();
  }
  look() {
    const waiting2 = new Map(this.board.snapshot.configs.map((view) => [view.id, view]));
    for (const [id, notice] of this.notices) {
      if (waiting2.has(id)) continue;
      notice.gone.cancel();
      if (notice.isAside && !this.board.isTold) continue;
      this.notices.delete(id);
      this.shelf.close(id).then(void 0, (error) => this.log.warn(`a difference was not closed: ${String(error)}`));
    }
    for (const [id, view] of waiting2) if (!this.notices.has(id)) void this.notice(view);
  }
  async notice(view) {
    const notice = { view, gone: new vscode20.CancellationTokenSource(), isAside: false };
    this.notices.set(view.id, notice);
    const options = { location: vscode20.ProgressLocation.Notification, title: titleOf(view), cancellable: true };
    await vscode20.window.withProgress(options, async (progress, aside) => {
      progress.report({ increment: 100 });
      await new Promise((done) => {
        aside.onCancellationRequested(() => {
          notice.isAside = true;
          done();
        });
        notice.gone.token.onCancellationRequested(() => done());
      });
    });
    notice.gone.dispose();
  }
};
function configInShort(view) {
  return `${visible(view.path)} waits for you to see it`;
}
function titleOf(view) {
  const link = (words2, command) => {
    return `[${words2}](command:prism.${command}?${encodeURIComponent(JSON.stringify([view.id]))})`;
  };
  const why = cut(label(view.why), ROW3).replaceAll("](", "]\u2060(");
  const links = [link("Show the difference", "showConfig"), link("Type the command in a terminal", "typeTrust")];
  return `A config waits for you to see it: ${why}. ${links.join(" \xB7 ")}`;
}

// src/person/status.ts
var MAX_LINES = 6;
var Status = class {
  constructor(board, asker) {
    this.board = board;
    this.asker = asker;
    this.item.name = "Prism";
    this.item.command = "prism.menu";
    this.changed = board.onChange(() => this.draw());
    this.draw();
    this.item.show();
  }
  board;
  asker;
  item = vscode21.window.createStatusBarItem("prism.status", vscode21.StatusBarAlignment.Left, 1);
  changed;
  draw() {
    const { snapshot, isConnected } = this.board;
    const asked = waiting(snapshot);
    const working = snapshot.grants.filter(isAtWork);
    this.item.text = face(isConnected, asked.length, working.length);
    this.item.backgroundColor = asked.length > 0 ? new vscode21.ThemeColor("statusBarItem.warningBackground") : void 0;
    this.item.accessibilityInformation = { label: spoken(isConnected, asked.length, working.length) };
    this.item.tooltip = this.tooltip(asked, working);
  }
  dispose() {
    this.changed.dispose();
    this.item.dispose();
  }
  tooltip(asked, working) {
    const now = Date.now();
    const lines = [];
    if (!this.board.isConnected) {
      lines.push(
        "**Prism is not connected**",
        "",
        "Start its daemon with `prism serve --detach`; this window then connects by itself."
      );
    } else {
      lines.push("**Prism is connected**");
      if (asked.length > 0) {
        lines.push("", `**${count(asked.length, "request")} waiting for you**`, "");
        lines.push(
          ...shortened(
            asked,
            (one) => `- ${escaped(oneLine(one))}${this.asker.isHere(one) ? "" : " _(another folder)_"}`
          )
        );
      }
      for (const view of this.board.snapshot.configs) lines.push("", escaped(configInShort(view)));
      if (this.board.snapshot.grants.length > 0) {
        lines.push("", "**Access**", "");
        lines.push(
          ...shortened(this.board.snapshot.grants, (grant2) => {
            const work = working.includes(grant2) ? "at work" : "has access";
            return `- ${escaped(grant2.agent)}: ${work}, ${left(grant2.expiresAt, now)}`;
          })
        );
      } else if (this.board.isTold) {
        lines.push("", "No agent has access now.");
      } else {
        lines.push("", "This daemon lets no editor decide. Requests are in the console.");
      }
    }
    return new vscode21.MarkdownString(lines.join("\n"));
  }
};
function oneLine(one) {
  if (one.kind === "confirmation") return cut(`${one.agent} wants to ${inShort(one)}`, 100);
  return cut(`${one.agent} asks for access: ${one.reason || one.scopes.map(scopeInShort).join(", ")}`, 100);
}
function isAtWork(grant2) {
  return grant2.sockets > 0 || grant2.actions > 0;
}
async function showMenu(board, asker) {
  const command = (icon, title2, id) => {
    return { label: title2, iconPath: new vscode21.ThemeIcon(icon), run: () => vscode21.commands.executeCommand(id) };
  };
  const heading = (text2) => ({ label: text2, kind: vscode21.QuickPickItemKind.Separator });
  const entries = [];
  const asked = waiting(board.snapshot);
  const { configs, grants } = board.snapshot;
  if (asked.length + configs.length > 0) {
    entries.push(heading("Waiting for you"));
    entries.push(
      ...asked.map((one) => ({
        label: label(oneLine(one)),
        iconPath: new vscode21.ThemeIcon("bell-dot"),
        run: () => asker.show(one)
      })),
      ...configs.map((view) => ({
        label: label(configInShort(view)),
        iconPath: new vscode21.ThemeIcon("diff"),
        run: () => vscode21.commands.executeCommand("prism.showConfig", view.id)
      }))
    );
  }
  entries.push(heading("Prism"));
  if (!board.isConnected) {
    entries.push(
      command("play", "Start Prism's daemon in a terminal", "prism.serve"),
      command("refresh", "Reconnect", "prism.reconnect")
    );
  } else {
    entries.push(command("list-tree", "Show who has access", "prism.grants.focus"));
    if (grants.length > 0) entries.push(command("circle-slash", "Revoke a grant\u2026", "prism.revoke"));
    if (grants.length > 1) entries.push(command("clear-all", "Revoke all\u2026", "prism.revokeAll"));
    entries.push(command("link-external", "Open the console", "prism.openConsole"));
  }
  entries.push(command("output", "Show the log", "prism.showLog"));
  const title = board.isConnected ? "Prism" : "Prism is not connected";
  const chosen2 = await vscode21.window.showQuickPick(entries, { title, placeHolder: "What do you want to do?" });
  await chosen2?.run?.();
}
function face(isConnected, asked, working) {
  if (!isConnected) return "$(debug-disconnect) Prism";
  if (asked > 0) return `$(bell-dot) Prism: ${count(asked, "request")} waiting`;
  if (working > 0) return `$(pulse) Prism: ${count(working, "agent")} at work`;
  return "$(plug) Prism";
}
function spoken(isConnected, asked, working) {
  if (!isConnected) return "Prism is not connected";
  return `Prism is connected, ${count(working, "agent")} at work, ${count(asked, "request")} waiting`;
}
function shortened(list, line) {
  const lines = list.slice(0, MAX_LINES).map(line);
  return list.length > MAX_LINES ? [...lines, `- and ${list.length - MAX_LINES} more`] : lines;
}

// src/person/commands.ts
var LINK_MS = 1e4;
var SHELL_MS = 3e3;
function commands9(board, asker, configs, hands) {
  const made4 = (id, run) => {
    return vscode22.commands.registerCommand(`prism.${id}`, async (...args) => {
      try {
        await run(...args);
      } catch (error) {
        void vscode22.window.showWarningMessage(`Prism: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
  };
  return vscode22.Disposable.from(
    made4("menu", () => showMenu(board, asker)),
    made4("showRequests", (id) => showRequests(board, asker, text(id))),
    made4("showConfig", (id) => configs.show(text(id))),
    made4("typeTrust", (id) => typed(configs.fix(text(id)), hands)),
    made4("revoke", (node) => revokeOne(board, grantOf(node))),
    made4("revokeAll", () => revokeAll(board)),
    made4("copySessionId", async (node) => {
      const grant2 = grantOf(node) ?? await chooseGrant(board, "Copy the session id of which grant?");
      if (grant2) await vscode22.env.clipboard.writeText(grant2.id);
    }),
    made4("openConsole", () => openConsole(hands)),
    made4("reconnect", () => hands.reconnect()),
    made4("showLog", () => hands.log.show()),
    made4("serve", () => inTerminal("prism serve --detach", hands))
  );
}
async function showRequests(board, asker, id) {
  const asked = waiting(board.snapshot);
  const named = asked.find((one) => one.id === id);
  if (named) return asker.show(named);
  if (asked.length === 0) {
    const why = board.isConnected ? "nothing waits for you" : "not connected to the daemon";
    vscode22.window.setStatusBarMessage(`Prism: ${why}`, 5e3);
    return;
  }
  const only = asked.length === 1 ? asked[0] : void 0;
  if (only) return asker.show(only);
  const entries = asked.map((one) => ({ label: label(oneLine(one)), iconPath: new vscode22.ThemeIcon("bell-dot"), one }));
  const chosen2 = await vscode22.window.showQuickPick(entries, { title: "Waiting for you", placeHolder: "Which one?" });
  if (chosen2) asker.show(chosen2.one);
}
async function revokeOne(board, named) {
  const grant2 = named ?? await chooseGrant(board, "Revoke which grant?");
  if (!grant2) return;
  const children = board.snapshot.grants.filter((other) => other.parent === grant2.id).length;
  const detail = ["Its connection is closed at once. What it has changed stays."];
  if (children > 0) detail.push(`${count(children, "grant")} that came from it ends too.`);
  if (await sure(`Take ${visible(grant2.agent)}'s access away?`, detail.join(" "), "Revoke"))
    await board.revoke(grant2.id);
}
async function revokeAll(board) {
  const { grants } = board.snapshot;
  if (grants.length === 0) {
    vscode22.window.setStatusBarMessage("Prism: no agent has access", 5e3);
    return;
  }
  const names = grants.map((grant2) => visible(grant2.agent)).join(", ");
  if (!await sure(`Take away all access, of ${count(grants.length, "grant")}?`, names, "Revoke all")) return;
  const ended = await Promise.allSettled(board.snapshot.grants.map((grant2) => board.revoke(grant2.id)));
  const alive = new Set(board.snapshot.grants.map((grant2) => grant2.id));
  const failed = ended.find((one, i) => one.status === "rejected" && alive.has(grants[i]?.id ?? ""));
  if (failed?.status === "rejected") throw failed.reason;
}
async function chooseGrant(board, title) {
  const now = Date.now();
  const entries = board.snapshot.grants.map((grant2) => ({
    label: label(grant2.agent),
    description: left(grant2.expiresAt, now),
    detail: grant2.roots.map(label).join(", "),
    grant: grant2
  }));
  if (entries.length === 0) {
    vscode22.window.setStatusBarMessage("Prism: no agent has access", 5e3);
    return void 0;
  }
  return (await vscode22.window.showQuickPick(entries, { title, placeHolder: "Agents with access" }))?.grant;
}
async function sure(question, detail, act) {
  return await vscode22.window.showWarningMessage(question, { modal: true, detail }, act) === act;
}
async function openConsole(hands) {
  const link = await new Promise((done) => {
    const options = { timeout: LINK_MS, env: { ...process.env, PRISM_HOME: hands.home() } };
    (0, import_node_child_process.execFile)("prism", ["console", "--print", "--json"], options, (error, stdout) => {
      if (error) return done(error);
      try {
        done(text(object(JSON.parse(stdout))["url"]));
      } catch {
        done(new Error("prism printed no link"));
      }
    });
  });
  if (typeof link === "string" && link !== "") {
    await vscode22.env.openExternal(vscode22.Uri.parse(link, true));
    return;
  }
  hands.log.info(`prism console: ${String(link)}`);
  inTerminal("prism console", hands);
}
function inTerminal(command, hands) {
  terminalOf(hands).sendText(command);
}
async function typed(command, hands) {
  const terminal = terminalOf(hands);
  if (tellsWhenItListens()) {
    const told6 = vscode22.window.onDidChangeTerminalShellIntegration;
    await once(told6, (change2) => change2.terminal === terminal && change2.shellIntegration.cwd !== void 0, SHELL_MS);
  }
  terminal.sendText(command, false);
}
function tellsWhenItListens() {
  const isOn = vscode22.workspace.getConfiguration("terminal.integrated.shellIntegration").get("enabled") !== false;
  return isOn && vscode22.window.onDidChangeTerminalShellIntegration !== void 0;
}
function terminalOf(hands) {
  const terminal = vscode22.window.createTerminal({ name: "Prism", env: { PRISM_HOME: hands.home() } });
  terminal.show();
  return terminal;
}
function grantOf(node) {
  const grant2 = object(node)["grant"];
  return typeof grant2 === "object" && grant2 !== null ? grant2 : void 0;
}

// src/person/grants.ts
var import_node_path3 = require("node:path");
var vscode23 = __toESM(require("vscode"));
var MAX_ACTIONS = 10;
var CALM_MS = 15e3;
var LATE_MS = 1e3;
var Grants = class {
  constructor(board, asker) {
    this.board = board;
    this.asker = asker;
    this.view = vscode23.window.createTreeView("prism.grants", { treeDataProvider: this });
    this.parts = [
      this.changed,
      this.view,
      board.onChange(() => this.draw()),
      this.view.onDidChangeVisibility(() => this.draw())
    ];
    this.draw();
  }
  board;
  asker;
  changed = new vscode23.EventEmitter();
  view;
  parts;
  timer;
  onDidChangeTreeData = this.changed.event;
  getChildren(node) {
    if (node === void 0) {
      const { grants } = this.board.snapshot;
      const asked = waiting(this.board.snapshot).map((one) => ({ kind: "waiting", one }));
      const isRoot = (grant2) => !grants.some((other) => other.id === grant2.parent);
      return [...asked, ...grants.filter(isRoot).map((grant2) => ({ kind: "grant", grant: grant2 }))];
    }
    if (node.kind === "grant") return this.partsOf(node.grant);
    if (node.kind === "scopes") {
      return riskyFirst(node.grant.scopes).map((scope) => {
        const icon = isRisky(scope) ? "warning" : "check";
        return { kind: "fact", id: `${node.grant.id} ${scope}`, icon, text: scopeInWords(scope), more: scope };
      });
    }
    if (node.kind === "history") {
      const last = node.grant.last.slice(0, MAX_ACTIONS);
      return last.map((action, i) => ({ kind: "action", action, id: `${node.grant.id} action ${i}` }));
    }
    return [];
  }
  getTreeItem(node) {
    switch (node.kind) {
      case "waiting":
        return this.waitingItem(node.one);
      case "grant":
        return this.grantItem(node.grant);
      case "fact": {
        const item2 = new vscode23.TreeItem(node.text);
        item2.id = node.id;
        item2.iconPath = new vscode23.ThemeIcon(node.icon);
        if (node.more) item2.description = node.more;
        item2.tooltip = [node.text, node.more].filter(Boolean).join(" ");
        return item2;
      }
      case "scopes": {
        const { scopes, id } = node.grant;
        const item2 = new vscode23.TreeItem(`may ${riskyFirst(scopes).slice(0, 2).map(scopeInShort).join(", ")}`);
        item2.id = `${id} scopes`;
        item2.iconPath = new vscode23.ThemeIcon("key");
        item2.collapsibleState = vscode23.TreeItemCollapsibleState.Collapsed;
        if (scopes.length > 2) item2.description = `and ${scopes.length - 2} more`;
        return item2;
      }
      case "history": {
        const last = node.grant.last[0];
        const item2 = new vscode23.TreeItem(
          count(node.grant.actions, "action"),
          vscode23.TreeItemCollapsibleState.Collapsed
        );
        item2.id = `${node.grant.id} history`;
        item2.iconPath = new vscode23.ThemeIcon("history");
        if (last) item2.description = `last ${ago(last.at, Date.now())}: ${visible(last.action)}`;
        return item2;
      }
      case "action": {
        const item2 = new vscode23.TreeItem(visible(node.action.action));
        item2.id = node.id;
        item2.description = cut(visible([node.action.about, node.action.result].filter(Boolean).join(" \xB7 ")), 120);
        item2.iconPath = new vscode23.ThemeIcon(
          node.action.result === "ok" || node.action.result === "allowed" ? "check" : "circle-outline"
        );
        item2.tooltip = `${new Date(node.action.at).toLocaleTimeString()} ${visible(node.action.about)}`;
        return item2;
      }
    }
  }
  dispose() {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
  }
  draw() {
    clearTimeout(this.timer);
    const { grants } = this.board.snapshot;
    const asked = waiting(this.board.snapshot).length;
    this.view.badge = asked > 0 ? { value: asked, tooltip: `${count(asked, "request")} waiting` } : void 0;
    this.changed.fire(void 0);
    if (!this.view.visible || grants.length === 0) return;
    const soonest = Math.min(...grants.map((grant2) => grant2.expiresAt)) - Date.now();
    this.timer = setTimeout(() => this.draw(), soonest < 135e3 ? LATE_MS : CALM_MS);
  }
  partsOf(grant2) {
    const nodes = grant2.roots.map((root, i) => {
      const [text2, more] = [visible((0, import_node_path3.basename)(root)) || "/", visible(root)];
      return { kind: "fact", id: `${grant2.id} root ${i}`, icon: "folder", text: text2, more };
    });
    nodes.push({ kind: "scopes", grant: grant2 });
    if (grant2.confirmsChanges) {
      nodes.push({ kind: "fact", id: `${grant2.id} confirms`, icon: "checklist", text: "you confirm each change" });
    }
    if (grant2.actions > 0) nodes.push({ kind: "history", grant: grant2 });
    const children = this.board.snapshot.grants.filter((other) => other.parent === grant2.id);
    return [...nodes, ...children.map((child) => ({ kind: "grant", grant: child }))];
  }
  grantItem(grant2) {
    const item2 = new vscode23.TreeItem(visible(grant2.agent), vscode23.TreeItemCollapsibleState.Expanded);
    const now = Date.now();
    item2.id = grant2.id;
    item2.contextValue = "grant";
    item2.description = left(grant2.expiresAt, now);
    item2.iconPath = new vscode23.ThemeIcon(isAtWork(grant2) ? "pulse" : "person");
    const lines = [
      `**${escaped(grant2.agent)}** ${isAtWork(grant2) ? "is at work" : "has access"}`,
      "",
      `Until ${new Date(grant2.expiresAt).toLocaleTimeString()}, ${left(grant2.expiresAt, now)}`,
      "",
      ...grant2.roots.map((root) => `- ${escaped(root)}`)
    ];
    item2.tooltip = new vscode23.MarkdownString(lines.join("\n"));
    item2.accessibilityInformation = { label: `${visible(grant2.agent)}, grant, ${left(grant2.expiresAt, now)}` };
    return item2;
  }
  waitingItem(one) {
    const what = one.kind === "request" ? "asks for access" : `wants to ${cut(inShort(one), 80)}`;
    const item2 = new vscode23.TreeItem(`${label(one.agent)} ${what}`);
    item2.id = one.id;
    item2.contextValue = "waiting";
    item2.description = one.kind === "request" ? cut(visible(one.reason), 80) : "";
    item2.iconPath = new vscode23.ThemeIcon("bell-dot", new vscode23.ThemeColor("editorWarning.foreground"));
    item2.command = { command: "prism.showRequests", title: "Decide", arguments: [one.id] };
    if (!this.asker.isHere(one))
      item2.tooltip = "It is about another folder than this window's. You can decide here all the same.";
    return item2;
  }
};

// src/person/marks.ts
var vscode24 = __toESM(require("vscode"));

// src/person/places.ts
function placesAfter(changes) {
  let moved = 0;
  return [...changes].sort((a, b) => a.rangeOffset - b.rangeOffset).map(({ rangeOffset, rangeLength, text: text2 }) => {
    const start = rangeOffset + moved;
    moved += text2.length - rangeLength;
    return { start, end: start + text2.length };
  });
}
function shift(place, { rangeOffset, rangeLength, text: text2 }) {
  const [end, grown] = [rangeOffset + rangeLength, text2.length - rangeLength];
  if (rangeOffset >= place.end) return;
  if (end <= place.start) {
    place.start += grown;
    place.end += grown;
    return;
  }
  place.start = Math.min(place.start, rangeOffset);
  place.end = Math.max(place.end + grown, rangeOffset + text2.length);
}

// src/person/marks.ts
var FRESH_MS = 5e3;
var FADING_MS = 5e3;
var MAX_PLACES = 400;
var Marks = class {
  constructor(texts2, board) {
    this.board = board;
    this.parts = [
      this.fresh,
      this.fading,
      this.names,
      this.badges,
      // The texts hear of a change first and know whose it is; the editor's own event, which comes after it, has the places.
      texts2.onChange((changed) => this.noted(changed)),
      texts2.onDirty((document) => this.dirtied(document)),
      vscode24.workspace.onDidChangeTextDocument((change2) => this.changed(change2)),
      vscode24.workspace.onDidSaveTextDocument((document) => this.saved(document)),
      vscode24.workspace.onDidCloseTextDocument((document) => this.saved(document)),
      vscode24.window.onDidChangeVisibleTextEditors(() => this.draw()),
      vscode24.window.registerFileDecorationProvider(this)
    ];
  }
  board;
  places = /* @__PURE__ */ new Map();
  /** Files with an agent's unsaved edits, and whose. */
  unsaved = /* @__PURE__ */ new Map();
  /** Whose change each text had last, until the person changes it. */
  last = /* @__PURE__ */ new Map();
  badges = new vscode24.EventEmitter();
  fresh = light("prism.agentEditBackground", "prism.agentEditRuler");
  fading = light("prism.agentEditFadingBackground", void 0);
  names = vscode24.window.createTextEditorDecorationType({
    rangeBehavior: vscode24.DecorationRangeBehavior.ClosedClosed
  });
  parts;
  timer;
  onDidChangeFileDecorations = this.badges.event;
  provideFileDecoration(uri) {
    const agents = this.unsaved.get(uri.toString());
    if (!agents) return void 0;
    const tooltip = `Unsaved edits of ${[...agents].join(", ")}`;
    return new vscode24.FileDecoration("\u270E", tooltip, new vscode24.ThemeColor("prism.agentForeground"));
  }
  dispose() {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
  }
  noted({ text: { document }, by }) {
    const key = document.uri.toString();
    if (by === void 0) this.last.delete(key);
    else this.last.set(key, { version: document.version, agent: this.board.nameOf(by) });
  }
  /** Keeps the lit places where they are in the text while it changes around them, and lights what an agent has changed. */
  changed({ document, contentChanges }) {
    const key = document.uri.toString();
    const last = this.last.get(key);
    const places = this.places.get(key) ?? [];
    if (contentChanges.length === 0 || places.length === 0 && !last) return;
    const changes = [...contentChanges].sort((a, b) => b.rangeOffset - a.rangeOffset);
    for (const place of places) for (const change2 of changes) shift(place, change2);
    if (last?.version !== document.version) return;
    const made4 = placesAfter(changes).map((place) => ({ ...place, agent: last.agent, at: Date.now() }));
    this.places.set(key, [...places, ...made4].slice(-MAX_PLACES));
    if (document.isDirty) this.dirtied(document);
    this.draw();
  }
  /** The editor says a little after a change that a text is unsaved. What a file was written with is saved already. */
  dirtied(document) {
    const key = document.uri.toString();
    if (!document.isDirty) return this.saved(document);
    const last = this.last.get(key);
    if (!last || this.unsaved.get(key)?.has(last.agent)) return;
    this.unsaved.set(key, (this.unsaved.get(key) ?? /* @__PURE__ */ new Set()).add(last.agent));
    this.badges.fire(document.uri);
  }
  saved({ uri }) {
    this.last.delete(uri.toString());
    if (this.unsaved.delete(uri.toString())) this.badges.fire(uri);
  }
  draw() {
    clearTimeout(this.timer);
    const now = Date.now();
    for (const [key, places] of this.places) {
      const lit = places.filter((place) => place.at + FRESH_MS + FADING_MS > now);
      if (lit.length > 0) this.places.set(key, lit);
      else this.places.delete(key);
    }
    for (const editor of vscode24.window.visibleTextEditors) this.drawIn(editor, now);
    const turns = [...this.places.values()].flat().flatMap(({ at: at2 }) => [at2 + FRESH_MS, at2 + FRESH_MS + FADING_MS]);
    const next = Math.min(...turns.filter((turn) => turn > now));
    if (Number.isFinite(next)) this.timer = setTimeout(() => this.draw(), next - now + 10);
  }
  drawIn(editor, now) {
    const { document } = editor;
    const places = this.places.get(document.uri.toString()) ?? [];
    const rangeOf = ({ start, end }) => new vscode24.Range(document.positionAt(start), document.positionAt(end));
    const isFresh = ({ at: at2 }) => at2 + FRESH_MS > now;
    editor.setDecorations(this.fresh, places.filter(isFresh).map(rangeOf));
    editor.setDecorations(this.fading, places.filter((place) => !isFresh(place)).map(rangeOf));
    editor.setDecorations(this.names, beside(document, places, isFresh));
  }
};
function beside(document, places, isFresh) {
  const newest = /* @__PURE__ */ new Map();
  for (const place of places) {
    const other = newest.get(place.agent);
    if (!other || place.at > other.at || place.at === other.at && place.end > other.end)
      newest.set(place.agent, place);
  }
  const atLine = /* @__PURE__ */ new Map();
  for (const place of newest.values()) {
    const end = document.positionAt(place.end);
    const line = end.character === 0 && end.line > 0 && place.end > place.start ? end.line - 1 : end.line;
    atLine.set(line, [...atLine.get(line) ?? [], place]);
  }
  return [...atLine].map(([line, here]) => {
    const range = document.lineAt(line).range;
    const text2 = cut(here.map(({ agent }) => agent).join(", "), 60);
    const color = new vscode24.ThemeColor(here.some(isFresh) ? "prism.agentForeground" : "prism.agentFadingForeground");
    const after = { contentText: `\u270E ${text2}`, margin: "0 0 0 2ch", color, fontStyle: "italic" };
    return { range: new vscode24.Range(range.end, range.end), renderOptions: { after } };
  });
}
function light(background, ruler) {
  return vscode24.window.createTextEditorDecorationType({
    backgroundColor: new vscode24.ThemeColor(background),
    borderRadius: "2px",
    rangeBehavior: vscode24.DecorationRangeBehavior.ClosedClosed,
    ...ruler && {
      overviewRulerColor: new vscode24.ThemeColor(ruler),
      overviewRulerLane: vscode24.OverviewRulerLane.Center
    }
  });
}

// src/person/index.ts
function showPerson(desk) {
  desk.line.registerWith({ decides: true });
  const board = new Board(desk.line);
  const shelf = new Shelf();
  const asker = new Asker(board, () => desk.roots.all, shelf, desk.texts, desk.log);
  const configs = new Configs(board, shelf, desk.log);
  const status = new Status(board, asker);
  const grants = new Grants(board, asker);
  const marks = new Marks(desk.texts, board);
  const hands = { log: desk.log, home, reconnect: () => desk.line.again() };
  const say = () => {
    const state = board.isTold ? "told" : board.isConnected ? "connected" : "off";
    return vscode25.commands.executeCommand("setContext", "prism.state", state);
  };
  say();
  return vscode25.Disposable.from(
    commands9(board, asker, configs, hands),
    board.onChange(say),
    marks,
    grants,
    status,
    asker,
    configs,
    shelf,
    board
  );
}

// src/roots.ts
var nodePath4 = __toESM(require("node:path"));
var import_node_url = require("node:url");
var vscode26 = __toESM(require("vscode"));
var Roots = class {
  folders = [];
  changed = new vscode26.EventEmitter();
  subscription;
  onChange = this.changed.event;
  constructor() {
    this.read();
    this.subscription = vscode26.workspace.onDidChangeWorkspaceFolders(() => {
      this.read();
      this.changed.fire();
    });
  }
  dispose() {
    this.subscription.dispose();
    this.changed.dispose();
  }
  /** Where the folders really are. */
  get all() {
    return this.folders.map((folder) => folder.real);
  }
  /** The first folder: relative paths are meant in it. */
  get first() {
    const [first] = this.folders;
    if (!first) throw new Refusal("outside_root", "no folder is open in this window");
    return first.real;
  }
  /** Whether a real path is one of the folders or beneath one. */
  holds(real) {
    return this.folders.some((folder) => isBeneath(real, folder.real));
  }
  /** Returns the file or folder that a path leads to, as this window calls it. Refused if it leads elsewhere. */
  async file(written) {
    return this.uri(await this.real(written));
  }
  /** The same as a path: where it really is. */
  async real(written) {
    return this.checked(written, this.resolved(written, realOf));
  }
  /** The same of a name that is not followed: a link is itself. */
  async realName(written) {
    return this.checked(written, this.resolved(written, realNameOf));
  }
  /** How this window calls a real path. */
  uri(real) {
    const folder = this.folderOf(real);
    if (!folder || folder.path === folder.real) return vscode26.Uri.file(real);
    return vscode26.Uri.joinPath(folder.uri, ...nodePath4.relative(folder.real, real).split("/").filter(Boolean));
  }
  /** The real path of a file of this window's; `undefined` for what is no file, or in none of the folders. */
  path(uri) {
    if (uri.scheme !== "file") return void 0;
    const real = realOr(uri.fsPath);
    return this.holds(real) ? real : void 0;
  }
  /** The nearest folder above a real path. */
  rootOf(real) {
    return this.folderOf(real)?.real;
  }
  folderOf(real) {
    const above = this.folders.filter((folder) => isBeneath(real, folder.real));
    return above.sort((a, b) => b.real.length - a.real.length)[0];
  }
  resolved(written, resolve2) {
    if (written === "" || written.includes("\0")) throw wrong(`${JSON.stringify(written)} is no path`);
    try {
      const path = written.startsWith("file:") ? (0, import_node_url.fileURLToPath)(written) : written;
      return resolve2(nodePath4.isAbsolute(path) ? path : nodePath4.join(this.first, path));
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw wrong(`${JSON.stringify(written)} cannot be found: ${why}`);
    }
  }
  checked(written, real) {
    if (this.holds(real)) return real;
    const folders = this.folders.map((folder) => JSON.stringify(folder.real)).join(", ");
    throw new Refusal(
      "outside_root",
      `${JSON.stringify(written)} is in none of this window's folders: ${folders || "none is open"}`
    );
  }
  read() {
    const open = (vscode26.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
    this.folders = open.map(({ uri }) => ({ uri, path: uri.fsPath, real: realOr(uri.fsPath) }));
  }
};

// src/runs.ts
var vscode28 = __toESM(require("vscode"));

// src/screen.ts
var vscode27 = __toESM(require("vscode"));
var MAX_KEPT = 1 << 17;
var bold = (text2) => `\x1B[1m${text2}\x1B[0m`;
var dim = (text2) => `\x1B[2m${text2}\x1B[0m`;
var RESTORED = "\x1B[?1047l\x1B[?25h\x1B[0m";
var Screen = class {
  writes = new vscode27.EventEmitter();
  sizes = new vscode27.EventEmitter();
  names = new vscode27.EventEmitter();
  closes = new vscode27.EventEmitter();
  onDidWrite = this.writes.event;
  onDidOverrideDimensions = this.sizes.event;
  onDidChangeName = this.names.event;
  /** The person has closed it. */
  onClosedByPerson = this.closes.event;
  isOpen = false;
  kept = "";
  size;
  name = "";
  isAtLineStart = true;
  /** Has something new shown here, below what was shown before. */
  begin({ kind, title, command, path, rows, cols }) {
    this.rename(title);
    this.resize(rows, cols);
    if (kind === "command") this.line(`${bold(`$ ${command}`)}  ${dim(`in ${path}`)}`);
  }
  /** Shows it as it is. */
  write(text2) {
    if (text2 === "") return;
    this.isAtLineStart = text2.endsWith("\n");
    if (this.isOpen) return this.writes.fire(text2);
    this.kept += text2;
    if (this.kept.length > 2 * MAX_KEPT) this.kept = dim("[\u2026]") + this.kept.slice(-MAX_KEPT).replace(/^[^\n]*/, "\r");
  }
  /** Draws it as large as it is there; without a size as large as its panel is. */
  resize(rows, columns) {
    this.size = rows !== void 0 && columns !== void 0 ? { rows, columns } : void 0;
    if (this.isOpen) this.sizes.fire(this.size);
  }
  /** Marks it as over, and how. */
  end(title, ended) {
    this.line(`${RESTORED}${dim(`[${endingOf(ended)}]`)}`);
    this.rename(`${ended.exit_code === 0 ? "\u2713" : "\u2717"} ${title}`);
  }
  open() {
    this.isOpen = true;
    if (this.size) this.sizes.fire(this.size);
    if (this.name !== "") this.names.fire(this.name);
    this.writes.fire(this.kept);
    this.kept = "";
  }
  close() {
    this.isOpen = false;
    this.closes.fire();
  }
  dispose() {
    vscode27.Disposable.from(this.writes, this.sizes, this.names, this.closes).dispose();
  }
  /** Writes a line of ours, on a line of its own. */
  line(text2) {
    this.write(`${this.isAtLineStart ? "" : "\r\n"}${text2}\r
`);
  }
  rename(name) {
    this.name = name;
    if (this.isOpen) this.names.fire(name);
  }
};
function endingOf({ exit_code: code, signal, note }) {
  const how = code !== void 0 ? `exit code ${code}` : signal !== void 0 ? `signal ${signal}` : void 0;
  return ["ended", how, note].filter((part) => part !== void 0).join(", ");
}

// src/runs.ts
var MAX_ENDED = 4;
var MAX_RUNNING = 64;
function showRuns(desk) {
  const runs = new Runs();
  const on = desk.line.onMessage.bind(desk.line);
  desk.line.registerWith({ shows: true });
  return vscode28.Disposable.from(
    runs,
    on("show", (message) => runs.begin(message)),
    on("show_output", (message) => runs.print(message)),
    on("show_resized", (message) => runs.resize(message)),
    on("show_ended", (message) => runs.end(message)),
    desk.line.onState(({ is }) => {
      if (is !== "connected") runs.lose();
    })
  );
}
var Runs = class {
  running = /* @__PURE__ */ new Map();
  /** The oldest first. */
  ended = [];
  begin(show3) {
    if (this.running.size >= MAX_RUNNING || this.running.has(show3.id)) return;
    const pane = this.again(show3) ?? this.opened(show3);
    this.running.set(show3.id, pane);
    pane.screen.begin(show3);
  }
  print({ id, text: text2 }) {
    this.running.get(id)?.screen.write(text2);
  }
  resize({ id, rows, cols }) {
    this.running.get(id)?.screen.resize(rows, cols);
  }
  end({ id, ...ended }) {
    const pane = this.running.get(id);
    if (!pane) return;
    this.running.delete(id);
    pane.screen.end(pane.title, ended);
    this.ended.push(pane);
    this.tidy();
  }
  /** The connection is gone: what runs may run on, and nobody tells of it here. */
  lose() {
    for (const id of [...this.running.keys()]) this.end({ id, note: "or not; the connection to Prism was lost" });
  }
  dispose() {
    for (const pane of [...this.running.values(), ...this.ended]) close(pane);
    this.running.clear();
    this.ended = [];
  }
  /** What is run again is shown where it was the last time. */
  again({ title, kind }) {
    const index = kind === "command" ? this.ended.findIndex((pane) => pane.title === title) : -1;
    return index < 0 ? void 0 : this.ended.splice(index, 1)[0];
  }
  opened({ title }) {
    const screen = new Screen();
    const iconPath = new vscode28.ThemeIcon("robot");
    const terminal = vscode28.window.createTerminal({ name: title, pty: screen, iconPath, isTransient: true });
    const pane = { title, screen, terminal };
    screen.onClosedByPerson(() => this.forget(pane));
    return pane;
  }
  forget(pane) {
    this.ended = this.ended.filter((one) => one !== pane);
    for (const [id, one] of this.running) if (one === pane) this.running.delete(id);
  }
  /** Not the one that the person looks at. */
  tidy() {
    while (this.ended.length > MAX_ENDED) {
      const index = this.ended.findIndex(({ terminal }) => terminal !== vscode28.window.activeTerminal);
      const [pane] = this.ended.splice(Math.max(index, 0), 1);
      if (pane) close(pane);
    }
  }
};
function close({ screen, terminal }) {
  terminal.dispose();
  screen.dispose();
}

// src/self.ts
var import_node_crypto3 = require("node:crypto");
var vscode29 = __toESM(require("vscode"));
function self(context) {
  const kind = kindOf2(vscode29.env.appName, vscode29.env.uriScheme);
  const version = context.extension.packageJSON.version;
  return { pluginId: kind, kind, version: String(version), instanceId: (0, import_node_crypto3.randomUUID)(), startedAtMs: Date.now() };
}
function kindOf2(appName, uriScheme) {
  const name = `${appName} ${uriScheme}`.toLowerCase();
  for (const fork of ["code-server", "cursor", "void", "vscodium", "windsurf"]) {
    if (name.includes(fork)) return fork;
  }
  if (name.includes("vscode") || name.includes("visual studio code")) return "vscode";
  return uriScheme.toLowerCase().replace(/[^a-z0-9-]+/g, "-") || "vscode";
}

// src/spots.ts
var vscode30 = __toESM(require("vscode"));
var MAX_SPOTS = 256;
var Spots = class {
  spots = /* @__PURE__ */ new Map();
  subscriptions;
  constructor() {
    for (const editor of vscode30.window.visibleTextEditors) this.note(editor);
    this.subscriptions = vscode30.Disposable.from(
      vscode30.window.onDidChangeTextEditorSelection(({ textEditor }) => this.note(textEditor)),
      vscode30.workspace.onDidCloseTextDocument((document) => this.spots.delete(document.uri.toString()))
    );
  }
  dispose() {
    this.subscriptions.dispose();
  }
  /** What is selected in a text; nothing, at its beginning, if it was never shown. */
  of(document) {
    const active = vscode30.window.activeTextEditor;
    const editors = active ? [active, ...vscode30.window.visibleTextEditors] : vscode30.window.visibleTextEditors;
    const shown2 = editors.find((editor) => editor.document === document);
    return shown2?.selection ?? this.spots.get(document.uri.toString()) ?? new vscode30.Selection(0, 0, 0, 0);
  }
  /** Waits until the selection of a text is as it should be, but not for long. */
  async until(document, holds, withinMs) {
    if (holds(this.of(document))) return;
    const event = vscode30.window.onDidChangeTextEditorSelection;
    await once(event, ({ textEditor }) => textEditor.document === document && holds(textEditor.selection), withinMs);
  }
  /** Waits until a text is scrolled, but not for long: it may not have to be. */
  async untilViewport(document, withinMs) {
    await once(
      vscode30.window.onDidChangeTextEditorVisibleRanges,
      ({ textEditor }) => textEditor.document === document,
      withinMs
    );
  }
  note({ document, selection }) {
    const key = document.uri.toString();
    this.spots.delete(key);
    this.spots.set(key, selection);
    const [oldest] = this.spots.keys();
    if (this.spots.size > MAX_SPOTS && oldest !== void 0) this.spots.delete(oldest);
  }
};

// src/texts.ts
var vscode32 = __toESM(require("vscode"));

// src/disk.ts
var import_promises4 = require("node:fs/promises");
var MAX_BYTES = 5 << 20;
async function onDisk(path) {
  try {
    const found3 = await (0, import_promises4.stat)(path);
    if (found3.isDirectory()) throw wrong(`${JSON.stringify(path)}: it is a folder`);
    if (!found3.isFile()) throw wrong(`${JSON.stringify(path)}: it is no regular file`);
    const bytes = found3.size > MAX_BYTES ? void 0 : await (0, import_promises4.readFile)(path);
    if (bytes === void 0 || bytes.length > MAX_BYTES) {
      const message = `${JSON.stringify(path)} has more than ${MAX_BYTES} bytes; read a part of it with a command`;
      throw new Refusal("too_large", message);
    }
    return bytes;
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const code = error.code;
    if (code === "ENOENT" || code === "ENOTDIR") return void 0;
    throw new Refusal("failed", `${JSON.stringify(path)} cannot be read: ${Refusal.of(error).message}`);
  }
}
function checkText(text2) {
  checkSize(Buffer.byteLength(text2));
  if (text2.includes("\0")) throw wrong("a text cannot hold a NUL");
}
function checkSize(bytes) {
  if (bytes <= MAX_BYTES) return;
  throw new Refusal("too_large", `a file of ${bytes} bytes; at most ${MAX_BYTES} can be written`);
}

// src/edits.ts
function applied2(text2, edits) {
  const order2 = edits.map((_, i) => i);
  const at2 = (i) => edits[i];
  order2.sort((a, b) => at2(a).start - at2(b).start || at2(a).end - at2(b).end || a - b);
  const parts = [];
  const back = [];
  let [done, last, length] = [0, 0, 0];
  for (const i of order2) {
    const { start, end, newText } = at2(i);
    if (start < done) throw wrong(`edits ${last} and ${i} overlap`);
    parts.push(text2.slice(done, start), newText);
    length += start - done;
    back.push({ start: length, end: length + newText.length, newText: text2.slice(start, end) });
    length += newText.length;
    [done, last] = [end, i];
  }
  parts.push(text2.slice(done));
  return { text: parts.join(""), back };
}
function offsets(text2, edits) {
  const lines = new Lines(text2);
  return edits.map(({ range, newText }, i) => {
    const [start, end] = [lines.offset(range.start), lines.offset(range.end)];
    if (typeof start === "string") throw wrong(`edit ${i}: ${start}`);
    if (typeof end === "string") throw wrong(`edit ${i}: ${end}`);
    if (start > end) throw wrong(`edit ${i}: \`range\` ends before it starts`);
    return { start, end, newText };
  });
}
function withBreaks(text2, lineBreak) {
  return text2.replace(/\r\n|\r|\n/g, lineBreak);
}
function difference(from, to) {
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from.charCodeAt(start) === to.charCodeAt(start)) start += 1;
  let end = 0;
  while (end < most - start && from.charCodeAt(from.length - 1 - end) === to.charCodeAt(to.length - 1 - end)) end += 1;
  return { start, end: from.length - end, newText: to.slice(start, to.length - end) };
}

// src/ledger.ts
var vscode31 = __toESM(require("vscode"));

// src/history.ts
var MAX_STEPS = 1e3;
var MAX_CHARACTERS2 = 4 << 20;
var History = class {
  back = [];
  forth = [];
  /** Notes what leads back from a change that was just made. What had been undone before it cannot be redone. */
  changed(back) {
    this.forth = [];
    this.back.push(back);
    let characters = this.back.reduce((sum, edits) => sum + sizeOf(edits), 0);
    while (this.back.length > MAX_STEPS || characters > MAX_CHARACTERS2) {
      characters -= sizeOf(this.back.shift() ?? []);
    }
  }
  /** Somebody else has changed the text. */
  clear() {
    [this.back, this.forth] = [[], []];
  }
  /** Returns the text that so many steps lead to, and what is to be called once it is there. */
  retraced(text2, way, steps) {
    const [from, to] = way === "undo" ? [this.back, this.forth] : [this.forth, this.back];
    if (steps > from.length) {
      const name = way === "undo" ? "undone" : "redone";
      throw wrong(`${from.length} changes can be ${name}, not ${steps}; what a person typed ends what can be`);
    }
    const inverses = [];
    let now = text2;
    for (const edits of from.slice(from.length - steps).reverse()) {
      const { text: next, back } = applied2(now, edits);
      inverses.push(back);
      now = next;
    }
    const walk = () => {
      from.splice(from.length - steps, steps);
      to.push(...inverses);
    };
    return { text: now, walk };
  }
};
function sizeOf(edits) {
  return edits.reduce((sum, edit) => sum + edit.newText.length + 16, 0);
}

// src/versions.ts
var MAX_KNOWN = 4096;
var EPOCH_MS = 15778368e5;
var Versions = class {
  known = /* @__PURE__ */ new Map();
  floor;
  /** Begins where no window before this one has been: it would have had to make a change every millisecond. */
  constructor(nowMs) {
    this.floor = Math.max(1, nowMs - EPOCH_MS);
  }
  /** The version of a text that is open. The digest is only asked for if it has been opened again. */
  told(path, document, version, digest) {
    let known = this.known.get(path);
    if (!known) {
      this.makeRoom();
      known = { document, base: this.floor - version, told: this.floor, closedAs: void 0 };
      this.known.set(path, known);
    } else if (known.document !== document) {
      const isSame = known.closedAs !== void 0 && known.closedAs === digest();
      known.base = known.told + (isSame ? 0 : 1) - version;
      known.document = document;
      known.closedAs = void 0;
    }
    known.told = known.base + version;
    return known.told;
  }
  /** Notes that a text was closed, and as what. If it is opened as the same, its version is the same. */
  closed(path, document, digest) {
    const known = this.known.get(path);
    if (known?.document !== document) return;
    known.document = void 0;
    known.closedAs = digest();
  }
  makeRoom() {
    if (this.known.size < MAX_KNOWN) return;
    for (const [path, known] of this.known) {
      if (known.document !== void 0) continue;
      this.floor = Math.max(this.floor, known.told + 1);
      this.known.delete(path);
      return;
    }
  }
};

// src/ledger.ts
var SETTLED_MS2 = 30;
var Ledger = class {
  constructor(roots) {
    this.roots = roots;
    for (const document of vscode31.workspace.textDocuments) this.note(document);
    this.subscriptions = vscode31.Disposable.from(
      vscode31.workspace.onDidOpenTextDocument((document) => void this.note(document)),
      vscode31.workspace.onDidChangeTextDocument((change2) => this.hear(change2)),
      vscode31.workspace.onDidSaveTextDocument((document) => {
        const known = this.note(document);
        if (known) known.saved = Promise.resolve(digestOf(unbroken(document.getText())));
      }),
      vscode31.workspace.onDidCloseTextDocument((document) => this.forget(document)),
      vscode31.workspace.onDidRenameFiles(({ files: files2 }) => {
        for (const { oldUri, newUri } of files2) this.renamed(realOr(oldUri.fsPath), realOr(newUri.fsPath));
      })
    );
  }
  roots;
  versions = new Versions(Date.now());
  known = /* @__PURE__ */ new Map();
  changes = new vscode31.EventEmitter();
  dirtied = new vscode31.EventEmitter();
  closes = new vscode31.EventEmitter();
  subscriptions;
  /** A text has changed, and whose doing it was. */
  onChange = this.changes.event;
  /** A text became unsaved or saved, without another change. */
  onDirty = this.dirtied.event;
  /** The editor has closed the document of this path. */
  onClose = this.closes.event;
  dispose() {
    this.subscriptions.dispose();
    this.changes.dispose();
    this.dirtied.dispose();
    this.closes.dispose();
  }
  /** A document as a text; `undefined` for what is no file, or in none of the folders. */
  of(document) {
    const known = this.note(document);
    if (!known || !this.roots.holds(known.path)) return void 0;
    const version = this.versions.told(known.path, document, document.version, () => digestOf(document.getText()));
    return { uri: document.uri, path: known.path, document, version, isDirty: document.isDirty };
  }
  /** The document of a real path, if the editor has it open. */
  at(path) {
    return vscode31.workspace.textDocuments.find((document) => this.note(document)?.path === path);
  }
  historyOf(document) {
    return this.note(document)?.history ?? new History();
  }
  /** Of the file that a text was made from, whatever its line breaks. */
  async savedDigest(document) {
    return this.note(document)?.saved;
  }
  /** Notes that a file is about to be written for a session, so that the text that follows it is known as theirs. */
  follows(path, content, by) {
    const document = this.at(path);
    const known = document && this.note(document);
    const text2 = asText(content);
    if (known && text2 !== void 0) known.follows = { digest: digestOf(unbroken(text2)), by };
  }
  /** Notes a change that the editor is about to make for a session. What is returned resolves when it has come. */
  expect(document, text2, by, reason) {
    return new Promise((landed) => {
      const known = this.note(document);
      if (known) known.expected = { version: document.version, text: text2, by, reason, landed };
      else landed();
    });
  }
  expectNoMore(document) {
    const known = this.known.get(document);
    if (known) known.expected = void 0;
  }
  hear(change2) {
    const { document } = change2;
    const known = this.note(document);
    if (!known) return;
    if (change2.contentChanges.length === 0) {
      known.held?.(document.isDirty);
      this.dirtied.fire(document);
      return;
    }
    known.held?.(false);
    const isOne = document.version === known.version + 1;
    known.version = document.version;
    const text2 = this.of(document);
    if (!text2) return;
    const base = isOne ? text2.version - 1 : void 0;
    const edits = change2.contentChanges.map(({ range, text: newText }) => ({ range, newText }));
    const tell2 = (isDirty, by, reason) => this.changes.fire({ text: { ...text2, isDirty }, base, edits, by, reason });
    const { expected } = known;
    if (expected && document.version > expected.version && document.getText() === expected.text) {
      tell2(true, expected.by, expected.reason);
      expected.landed();
      return;
    }
    known.history.clear();
    if (document.isDirty) tell2(true, void 0, "edit");
    else this.hold(document, known, tell2);
  }
  /** Tells a change once it is clear whether somebody made it, or the text has followed its file. */
  hold(document, known, tell2) {
    const content = document.getText();
    const timer = setTimeout(() => known.held?.(document.isDirty), SETTLED_MS2);
    known.held = (isDirty) => {
      clearTimeout(timer);
      known.held = void 0;
      if (isDirty || document.getText() !== content) return tell2(isDirty, void 0, "edit");
      const digest = digestOf(unbroken(content));
      known.saved = Promise.resolve(digest);
      const by = known.follows?.digest === digest ? known.follows.by : void 0;
      tell2(false, by, by === void 0 ? "disk" : "edit");
    };
  }
  forget(document) {
    const known = this.known.get(document);
    if (!known) return;
    this.known.delete(document);
    this.versions.closed(known.path, document, () => digestOf(document.getText()));
    this.closes.fire(known.path);
  }
  /** The text of a file that is renamed comes along, and with it how it came to be. */
  renamed(path, newPath) {
    const [from, to] = [this.knownAt(path), this.knownAt(newPath)];
    if (from && to && from[0].getText() === to[0].getText()) to[1].history = from[1].history;
  }
  knownAt(path) {
    return [...this.known].find(([, known]) => known.path === path);
  }
  note(document) {
    if (document.uri.scheme !== "file" || document.isClosed) return void 0;
    const found3 = this.known.get(document);
    if (found3) return found3;
    const path = realOr(document.uri.fsPath);
    const known = {
      path,
      history: new History(),
      version: document.version,
      saved: this.roots.holds(path) ? digestOnDisk(path) : Promise.resolve(void 0),
      follows: void 0,
      expected: void 0,
      held: void 0
    };
    this.known.set(document, known);
    return known;
  }
};
async function digestOnDisk(path) {
  try {
    const text2 = asText(await onDisk(path) ?? new Uint8Array());
    return text2 === void 0 ? void 0 : digestOf(unbroken(text2));
  } catch {
    return void 0;
  }
}

// src/texts.ts
var FOLLOW_WITHIN_MS = 3e3;
var TOLD_WITHIN_MS = 500;
var TURN_WITHIN_MS = 1e4;
var MAX_TRIES = 10;
var Texts = class {
  constructor(roots, log) {
    this.log = log;
    this.ledger = new Ledger(roots);
    this.onDirty = this.ledger.onDirty;
    this.listed = new Set(this.all().map((text2) => text2.path));
    this.subscriptions = vscode32.Disposable.from(
      this.ledger,
      this.ledger.onChange((change2) => {
        this.recount();
        if (change2.text.isDirty || this.listed.has(change2.text.path)) this.changes.fire(change2);
      }),
      this.ledger.onDirty(() => this.recount()),
      this.ledger.onClose((path) => this.close(path)),
      vscode32.workspace.onDidOpenTextDocument(() => this.recount()),
      vscode32.window.tabGroups.onDidChangeTabs(() => this.recount()),
      roots.onChange(() => this.recount())
    );
  }
  log;
  ledger;
  /** Paths that agents have opened. */
  opened = /* @__PURE__ */ new Set();
  /** The buffers that were told of, by path. */
  listed;
  changes = new vscode32.EventEmitter();
  moves = new vscode32.EventEmitter();
  /** Texts that edits are on their way to. */
  busy = /* @__PURE__ */ new Set();
  turns = new vscode32.EventEmitter();
  subscriptions;
  /** A buffer has changed, and whose doing it was. Changes that change nothing are none. */
  onChange = this.changes.event;
  /** A document became unsaved or saved, without another change. */
  onDirty;
  /** Buffers came or went. */
  onMove = this.moves.event;
  dispose() {
    this.subscriptions.dispose();
    for (const emitter of [this.changes, this.moves, this.turns]) emitter.dispose();
  }
  // --- What there is ---
  /** All buffers, by path. */
  all() {
    const shown2 = shownFiles();
    const texts2 = vscode32.workspace.textDocuments.map((document) => this.of(document));
    const buffers2 = texts2.filter((text2) => text2 !== void 0 && this.isBuffer(text2, shown2));
    return buffers2.sort((a, b) => a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
  }
  /** The buffer of a real path, if it is open. */
  at(path) {
    const document = this.ledger.at(path);
    const text2 = document && this.of(document);
    return text2 && this.isBuffer(text2, shownFiles()) ? text2 : void 0;
  }
  /** A document as a text; `undefined` for what is no file, or in none of the folders. */
  of(document) {
    return this.ledger.of(document);
  }
  /** Whether the file of an unsaved text is another than the text was made from. */
  async isChangedOnDisk(text2) {
    const there = await onDisk(text2.path);
    const now = there && asText(there);
    if (now === void 0) return true;
    const saved2 = await this.ledger.savedDigest(text2.document);
    return saved2 !== void 0 && digestOf(unbroken(now)) !== saved2;
  }
  /** Unsaved texts at a path or beneath it, for the results of what only sees the disk. */
  unsaved(path) {
    return this.all().flatMap((text2) => text2.isDirty && isBeneath(text2.path, path) ? [text2.path] : []);
  }
  // --- Opening ---
  /** Opens the text of a file, as the file is now unless it has unsaved changes. The person sees nothing of it. */
  async open(uri) {
    const looked = await this.look(uri);
    if ("bytes" in looked)
      throw wrong(`${JSON.stringify(looked.path)}: it is no text; write_file replaces it as a whole`);
    return looked;
  }
  /** The same of any file: what is no text comes as its bytes. */
  async look(uri) {
    const path = realOr(uri.fsPath);
    const bytes = await onDisk(path);
    const open = this.ledger.at(path);
    if (bytes === void 0) {
      const left2 = open?.isDirty ? this.of(open) : void 0;
      if (left2) return left2;
      throw new Refusal("not_found", `there is no file ${JSON.stringify(path)}`);
    }
    if (asText(bytes) === void 0 && !open?.isDirty) return { path, bytes };
    const document = open ?? await vscode32.workspace.openTextDocument(uri);
    await this.follow(document, bytes);
    this.opened.add(path);
    this.recount();
    const text2 = this.of(document);
    if (!text2) throw new Refusal("outside_root", `${JSON.stringify(path)} is in none of this window's folders`);
    return text2;
  }
  /** Notes that agents have no more use for a text. */
  close(path) {
    this.opened.delete(path);
    this.recount();
  }
  /** Notes that a file is about to be written for a session, so that the text that follows it is known as theirs. */
  follows(path, content, by) {
    this.ledger.follows(path, content, by);
  }
  /** Waits until the text of a file that was just written is what was written, if it is open. */
  async caughtUp(path) {
    const document = this.ledger.at(path);
    const bytes = document && await onDisk(path);
    if (document && bytes) await this.follow(document, bytes);
  }
  /** Waits until something holds of a text, and no longer than that; it is looked at whenever a text has changed. */
  async until(holds, withinMs) {
    if (!holds()) await once(vscode32.workspace.onDidChangeTextDocument, () => holds(), withinMs);
  }
  // --- Changing ---
  /**
   * Makes edits, all or none. Refused if one of the texts is at another version by then; what a person types meanwhile
   * stays.
   */
  async apply(changes, by, reason = "edit") {
    const planned3 = [...changes].map(([uri, { version, edits }]) => {
      let bound = version;
      const plan = (text2) => {
        bound ??= text2.version;
        if (bound !== text2.version) throw stale(text2);
        return offsets(text2.document.getText(), edits);
      };
      return { uri, edits: plan };
    });
    return this.edit(planned3, by, reason);
  }
  /**
   * The same of edits that are worked out on the texts as they are; worked out again if somebody types at that moment.
   */
  async edit(planned3, by, reason = "edit") {
    return this.inTurn(
      planned3.map(({ uri }) => uri),
      async (documents) => {
        for (let tries = 1; ; tries += 1) {
          const steps = planned3.map(({ edits }, i) => {
            const text2 = this.of(documents[i]);
            if (documents.indexOf(text2.document) !== i) throw wrong(`${JSON.stringify(text2.path)} is named twice`);
            return { text: text2, edits: edits(text2) };
          });
          try {
            const made4 = await this.make(steps, by, reason);
            for (const [document, back] of made4) this.ledger.historyOf(document).changed(back);
            return await this.after(documents);
          } catch (error) {
            const isStale = error instanceof Refusal && error.code === "changed";
            if (!isStale || tries >= MAX_TRIES || documents.some((document) => document.isClosed)) throw error;
          }
        }
      }
    );
  }
  /** Leads a text back by so many changes of agents', or forth again. */
  async retrace(uri, fits, way, count2, by) {
    return this.inTurn([uri], async (documents) => {
      const text2 = this.of(documents[0]);
      fits(text2);
      const now = text2.document.getText();
      const { text: goal, walk } = this.ledger.historyOf(text2.document).retraced(now, way, count2);
      await this.make([{ text: text2, edits: [difference(now, goal)] }], by, way);
      walk();
      return (await this.after(documents))[0];
    });
  }
  /** Opens texts, waits until no other edit of any of them is on its way, and keeps others away meanwhile. */
  async inTurn(uris, doing) {
    const documents = [];
    for (const uri of uris) documents.push((await this.open(uri)).document);
    const isFree = () => !documents.some((document) => this.busy.has(document));
    const end = Date.now() + TURN_WITHIN_MS;
    while (!isFree() && Date.now() < end) await once(this.turns.event, isFree, end - Date.now());
    if (!isFree()) throw new Refusal("rate_limited", "other edits of this text are on their way; try again", 1e3);
    const closed = documents.find((document) => document.isClosed);
    if (closed)
      throw new Refusal("changed", `${JSON.stringify(closed.uri.fsPath)} was closed meanwhile; open it again`);
    for (const document of documents) this.busy.add(document);
    try {
      return await doing(documents);
    } finally {
      for (const document of documents) this.busy.delete(document);
      this.turns.fire();
    }
  }
  /** Has the editor make the edits. Returns what leads back. */
  async make(steps, by, reason) {
    const edit = new vscode32.WorkspaceEdit();
    const made4 = /* @__PURE__ */ new Map();
    const expected = steps.map(({ text: { document }, edits }) => {
      const lineBreak = document.eol === vscode32.EndOfLine.CRLF ? "\r\n" : "\n";
      const fitted = edits.map((one) => ({ ...one, newText: withBreaks(one.newText, lineBreak) }));
      const { text: goal, back } = applied2(document.getText(), fitted);
      checkText(goal);
      made4.set(document, back);
      for (const { start, end, newText } of fitted) {
        edit.replace(document.uri, new vscode32.Range(document.positionAt(start), document.positionAt(end)), newText);
      }
      return { document, goal, version: document.version };
    });
    const landings = expected.map(({ document, goal }) => this.ledger.expect(document, goal, by, reason));
    try {
      if (!await vscode32.workspace.applyEdit(edit)) {
        const moved = expected.find(({ document, version }) => document.isClosed || document.version !== version);
        const text2 = moved && this.of(moved.document);
        if (text2) throw stale(text2);
        throw new Refusal("failed", "the editor did not make the edit; the file may be closed or read-only");
      }
      await within(TOLD_WITHIN_MS, Promise.all(landings));
    } finally {
      for (const { document } of expected) this.ledger.expectNoMore(document);
    }
    return made4;
  }
  /** The texts after a change, once the editor has said of all that they are unsaved. */
  async after(documents) {
    await this.until(() => documents.every((document) => document.isDirty), TOLD_WITHIN_MS);
    return documents.map((document) => this.of(document));
  }
  // --- What happens ---
  /** Tells which buffers came and went since it was last told. */
  recount() {
    const all = this.all();
    const now = new Set(all.map((text2) => text2.path));
    const opened2 = all.filter((text2) => !this.listed.has(text2.path));
    const closed = [...this.listed].filter((path) => !now.has(path));
    this.listed = now;
    if (opened2.length > 0 || closed.length > 0) this.moves.fire({ opened: opened2, closed });
  }
  /** Waits until a text that nobody has changed is what its file is. */
  async follow(document, bytes) {
    const goal = asText(bytes);
    if (goal === void 0) return;
    const isThere = () => document.isDirty || document.isClosed || isSameText(goal, document.getText());
    await this.until(isThere, FOLLOW_WITHIN_MS);
    if (!isThere()) this.log.debug(`${document.uri.fsPath} does not follow its file`);
  }
  isBuffer(text2, shown2) {
    return text2.isDirty || this.opened.has(text2.path) || shown2.has(text2.uri.toString());
  }
};
function stale(text2) {
  const path = JSON.stringify(text2.path);
  return new Refusal(
    "changed",
    `${path} is at version ${text2.version} by now; open it again, then make the edit for that`
  );
}
function languageOf(text2) {
  return text2.document.languageId === "plaintext" ? null : text2.document.languageId;
}
function shownFiles() {
  const shown2 = /* @__PURE__ */ new Set();
  for (const { input } of vscode32.window.tabGroups.all.flatMap((group) => group.tabs)) {
    if (input instanceof vscode32.TabInputText) shown2.add(input.uri.toString());
    if (input instanceof vscode32.TabInputTextDiff) shown2.add(input.modified.toString());
  }
  return shown2;
}

// src/verbs/advanced/fix.ts
var vscode36 = __toESM(require("vscode"));

// src/language/changes.ts
var vscode33 = __toESM(require("vscode"));

// src/unified.ts
var CONTEXT = 3;
function unified(path, text2, changes) {
  const name = path.replace(/[\u0000-\u001f\u007f-\u009f]/g, "\uFFFD");
  const lines = linesOf2(text2);
  const blocks = blocksOf(text2, lines, changes);
  let shown2 = `--- ${name}
+++ ${name}
`;
  let shift2 = 0;
  for (let i = 0; i < blocks.length; ) {
    let end = i + 1;
    while (end < blocks.length && at(blocks, end).from - at(blocks, end - 1).to <= 2 * CONTEXT) end += 1;
    const hunk = blocks.slice(i, end);
    shown2 += drawn(lines, hunk, shift2);
    for (const block of hunk) shift2 += block.new.length - block.old.length;
    i = end;
  }
  return shown2;
}
function overlap(changes) {
  const sorted = inOrder(changes);
  return sorted.some((change2, i) => i > 0 && change2.start < at(sorted, i - 1).end);
}
function inOrder(changes) {
  return [...changes].sort((a, b) => a.start - b.start || a.end - b.end);
}
function linesOf2(text2) {
  return text2.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
}
function blocksOf(text2, lines, changes) {
  const starts = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length;
  }
  const startOf = (line) => starts[line] ?? text2.length;
  const lineAt = (place) => {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = low + high + 1 >> 1;
      if (startOf(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const groups = [];
  for (const change2 of inOrder(changes)) {
    const from = Math.min(lineAt(change2.start), Math.max(0, lines.length - 1));
    const to = Math.min(lines.length, lineAt(change2.end) + 1);
    const last = groups.at(-1);
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.changes.push(change2);
    } else groups.push({ from, to, changes: [change2] });
  }
  return groups.flatMap((group) => {
    const [begin, end] = [startOf(group.from), startOf(group.to)];
    const inside = group.changes.map(({ start, end: stop, newText }) => ({
      start: start - begin,
      end: stop - begin,
      newText
    }));
    const block = {
      from: group.from,
      to: group.to,
      old: lines.slice(group.from, group.to),
      new: linesOf2(applied2(text2.slice(begin, end), inside).text)
    };
    while (block.old.length > 0 && block.old[0] === block.new[0]) {
      block.old.shift();
      block.new.shift();
      block.from += 1;
    }
    while (block.old.length > 0 && block.new.length > 0 && block.old.at(-1) === block.new.at(-1)) {
      block.old.pop();
      block.new.pop();
      block.to -= 1;
    }
    return block.old.length + block.new.length > 0 ? [block] : [];
  });
}
function drawn(lines, hunk, shift2) {
  const from = Math.max(0, at(hunk, 0).from - CONTEXT);
  const to = Math.min(lines.length, at(hunk, hunk.length - 1).to + CONTEXT);
  let [body, added, line] = ["", 0, from];
  const draw = (mark, text2) => {
    const bare = text2.replace(/\r?\n$|\r$/, "");
    body += `${mark}${bare}
`;
    if (bare === text2) body += "\\ No newline at end of file\n";
  };
  for (const block of hunk) {
    for (; line < block.from; line += 1) draw(" ", at(lines, line));
    for (const old of block.old) draw("-", old);
    for (const text2 of block.new) draw("+", text2);
    added += block.new.length - block.old.length;
    line = block.to;
  }
  for (; line < to; line += 1) draw(" ", at(lines, line));
  const [before, after] = [to - from, to - from + added];
  const side = (start, count2) => `${count2 === 0 ? start : start + 1}${count2 === 1 ? "" : `,${count2}`}`;
  return `@@ -${side(from, before)} +${side(from + shift2, after)} @@
${body}`;
}
function at(list, i) {
  return list[i];
}

// src/language/changes.ts
var MAX_FILES = 200;
var MAX_EDITS2 = 2e4;
var MAX_DIFF = 1 << 20;
var FILE_ENTRY = 1;
var TEXT_ENTRY = 2;
function versionsNow(desk) {
  const versions = /* @__PURE__ */ new Map();
  for (const document of vscode33.workspace.textDocuments) {
    const text2 = desk.texts.of(document);
    if (text2) versions.set(document.uri.toString(), text2.version);
  }
  return versions;
}
async function planned(call, edit, before) {
  const { desk } = call;
  refuseOthers(edit);
  const wanted = edit.entries().filter(([, edits]) => edits.length > 0);
  const count2 = wanted.reduce((sum, [, edits]) => sum + edits.length, 0);
  if (wanted.length > MAX_FILES || count2 > MAX_EDITS2) {
    const most = `at most ${MAX_EDITS2} in ${MAX_FILES} are made`;
    throw new Refusal("too_large", `the change would make ${count2} edits in ${wanted.length} files; ${most}`);
  }
  const plan = [];
  for (const [uri, edits] of wanted) {
    const name = uri.scheme === "file" ? uri.fsPath : uri.toString();
    const path = desk.roots.path(uri);
    if (path === void 0 || !call.mayChange(path)) {
      const where = `${JSON.stringify(name)}, which is in none of the granted folders`;
      throw new Refusal("outside_root", `the change would also touch ${where}; nothing was changed`);
    }
    const text2 = await desk.texts.open(uri);
    const known = before.get(text2.uri.toString());
    if (known === void 0 ? text2.isDirty : known !== text2.version) throw stale(text2);
    const { document } = text2;
    const inside = edits.map((one) => new vscode33.TextEdit(document.validateRange(one.range), one.newText));
    if (overlap(inside.map((one) => offsetsOf(text2, one))))
      throw new Refusal("failed", `the edits of ${JSON.stringify(name)} overlap; nothing was changed`);
    plan.push({ text: text2, edits: inside.filter((one) => document.getText(one.range) !== one.newText) });
  }
  return plan.filter(({ edits }) => edits.length > 0).sort((a, b) => a.text.path < b.text.path ? -1 : 1);
}
function previewed(plan) {
  const files2 = plan.map(({ text: text2, edits }) => ({ path: text2.path, version: text2.version, edits: edits.length }));
  return { files: files2, diff: cut2(differenceOf(plan)), is_preview: true };
}
async function made2(call, plan, reason) {
  if (plan.length === 0) return [];
  const changes = new Map(plan.map(({ text: text2, edits }) => [text2.uri, { version: text2.version, edits }]));
  const texts2 = await call.desk.texts.apply(changes, call.session, reason);
  return texts2.map((text2, i) => ({
    path: text2.path,
    version: text2.version,
    digest: digestOf(text2.document.getText()),
    is_dirty: text2.isDirty,
    edits: plan[i]?.edits.length ?? 0
  }));
}
function differenceOf(plan) {
  return plan.map(
    ({ text: text2, edits }) => unified(
      text2.path,
      text2.document.getText(),
      edits.map((one) => offsetsOf(text2, one))
    )
  ).join("");
}
function cut2(difference2) {
  if (difference2.length <= MAX_DIFF) return difference2;
  return difference2.slice(0, difference2.lastIndexOf("\n", MAX_DIFF) + 1);
}
function offsetsOf({ document }, edit) {
  const [start, end] = [document.offsetAt(edit.range.start), document.offsetAt(edit.range.end)];
  return { start, end, newText: edit.newText };
}
function refuseOthers(edit) {
  const { _allEntries: list } = edit;
  for (const entry of list?.call(edit) ?? []) {
    if (entry._type === FILE_ENTRY) {
      const kind = !entry.from ? "create" : entry.to ? "rename" : "delete";
      const instead = "do that with create_file, rename_file or delete_file";
      throw new Refusal(
        "unsupported",
        `the change would also ${kind} a file, which is not done along with edits; ${instead}`
      );
    }
    if (entry._type !== TEXT_ENTRY) {
      throw new Refusal("unsupported", "the change would insert a template or change a notebook; nothing was changed");
    }
  }
}

// src/language/site.ts
var vscode35 = __toESM(require("vscode"));

// src/language/speakers.ts
var vscode34 = __toESM(require("vscode"));
var KNOWN = {
  c: "llvm-vs-code-extensions.vscode-clangd",
  cpp: "llvm-vs-code-extensions.vscode-clangd",
  csharp: "ms-dotnettools.csharp",
  dart: "dart-code.dart-code",
  go: "golang.go",
  java: "redhat.java",
  kotlin: "fwcd.kotlin",
  lua: "sumneko.lua",
  php: "bmewburn.vscode-intelephense-client",
  python: "ms-python.python or ms-pyright.pyright",
  ruby: "shopify.ruby-lsp",
  rust: "rust-lang.rust-analyzer",
  shellscript: "mads-hartmann.bash-ide-vscode",
  swift: "swiftlang.swift-vscode",
  toml: "tamasfe.even-better-toml",
  yaml: "redhat.vscode-yaml",
  zig: "ziglang.vscode-zig"
};
function speakersOf(language) {
  return vscode34.extensions.all.filter((extension2) => {
    const manifest = extension2.packageJSON;
    if (manifest.main === void 0 && manifest.browser === void 0) return false;
    const declares = manifest.contributes?.languages?.some(({ id }) => id === language) ?? false;
    return declares || (manifest.activationEvents?.includes(`onLanguage:${language}`) ?? false);
  });
}
function nobody(language, what) {
  const known = KNOWN[language];
  const hint = known ? `install the extension ${known} in it` : "install an extension for this language in it";
  return new Refusal(
    "unsupported",
    `no extension of this editor ${what} in files of the language "${language}"; ${hint}`
  );
}

// src/language/site.ts
var START_WITHIN_MS = 1e4;
var COLD_MS = 5e3;
var ASK_AGAIN_MS = 300;
var warm = /* @__PURE__ */ new Set();
var Site = class _Site {
  constructor(call, text2) {
    this.call = call;
    this.text = text2;
  }
  call;
  text;
  /** Opens the text. Refused if a version was named and it is at another. */
  static async open(call, path, version) {
    const text2 = await call.desk.texts.open(await call.desk.roots.file(path));
    if (version !== void 0 && version !== text2.version) throw stale(text2);
    return new _Site(call, text2);
  }
  get document() {
    return this.text.document;
  }
  get language() {
    return this.document.languageId;
  }
  /** A place in the text as the editor takes it; refused if the text has none such. */
  place(place) {
    const offset = new Lines(this.document.getText()).offset(place);
    if (typeof offset === "string") throw wrong(offset);
    return this.document.positionAt(offset);
  }
  span(span2) {
    return new vscode35.Range(this.place(span2.start), this.place(span2.end));
  }
  /** Waits until whoever serves the language can answer. */
  async ready() {
    const { stop } = this.call;
    if (isTypeScript(this.document)) return load(this.document, stop);
    const sleeping = speakersOf(this.language).filter((extension2) => !extension2.isActive);
    const awake = Promise.allSettled(sleeping.map((extension2) => Promise.resolve(extension2.activate())));
    if (sleeping.length > 0) await Promise.race([awake, pause(START_WITHIN_MS, stop)]);
  }
  /** Asks all who serve the language. `what` is what for: "finds definitions". */
  async ask(what, command, args, isEmpty) {
    await this.ready();
    const { stop } = this.call;
    const until = warm.has(this.language) || isTypeScript(this.document) ? 0 : Date.now() + COLD_MS;
    for (; ; ) {
      const answer = await vscode35.commands.executeCommand(command, ...args) ?? void 0;
      if (stop.isCancellationRequested) throw new Refusal("timed_out", "nobody waits for it any more");
      if (!isEmpty(answer)) {
        warm.add(this.language);
        return answer;
      }
      if (speakersOf(this.language).length === 0) throw nobody(this.language, what);
      if (Date.now() >= until) {
        warm.add(this.language);
        return answer;
      }
      await pause(ASK_AGAIN_MS, stop);
    }
  }
};
function pause(milliseconds, stop) {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      stopped.dispose();
      done();
    };
    const timer = setTimeout(end, milliseconds);
    const stopped = stop.onCancellationRequested(end);
  });
}

// src/verbs/advanced/fix.ts
var MAX_FIXES = 200;
var ERRORS_WITHIN_MS = 3e3;
var ASK_AGAIN_MS2 = 200;
async function apply_quick_fix(call) {
  const path = call.args.text("path");
  const span2 = call.args.range("range");
  const title = call.args.maybeText("title");
  const version = call.args.number("version", 0, Number.MAX_SAFE_INTEGER);
  const isPreview = call.args.flag("preview");
  call.args.done();
  if (!span2) throw wrong("`range` is missing: {start, end}");
  const site = await Site.open(call, path, version);
  const range = site.span(span2);
  const before = versionsNow(call.desk);
  if (title === void 0) {
    const fixes = await offered(site, range, 0);
    return { fixes: fixes.slice(0, MAX_FIXES).map(told), is_complete: fixes.length <= MAX_FIXES };
  }
  const { edit, leaves } = await editOf(site, range, title);
  const plan = await planned(call, edit, before);
  const left2 = leaves === void 0 ? {} : { command_not_run: leaves };
  if (isPreview) return { ...previewed(plan), ...left2 };
  return { files: await made2(call, plan, "quick_fix"), is_preview: false, ...left2 };
}
async function offered(site, range, resolved) {
  const { document, call } = site;
  await site.ready();
  const until = Date.now() + ERRORS_WITHIN_MS;
  const lent = await lentErrors(site, range, until);
  try {
    for (; ; ) {
      const command = "vscode.executeCodeActionProvider";
      const all = await vscode36.commands.executeCommand(
        command,
        document.uri,
        range,
        void 0,
        resolved
      ) ?? [];
      if (all.length === 0 && speakersOf(site.language).length === 0) throw nobody(site.language, "offers quick fixes");
      const isEarly = isTypeScript(document) && lent.hasErrors && !all.some(isFix);
      if (!isEarly || Date.now() >= until || call.stop.isCancellationRequested) return all;
      await pause(ASK_AGAIN_MS2, call.stop);
    }
  } finally {
    lent.dispose();
  }
}
async function lentErrors(site, range, until) {
  const { document, call } = site;
  const { uri } = document;
  if (!isTypeScript(document)) {
    const isServed = speakersOf(site.language).length > 0 && !isSilent(document);
    if (isServed && vscode36.languages.getDiagnostics(uri).length === 0) await untilHeard(document, until, call.stop);
    return { hasErrors: false, dispose: () => void 0 };
  }
  const found3 = (await diagnose(document, call.stop) ?? []).filter((error) => error.range.intersection(range));
  const hasErrors = found3.some((error) => error.severity === vscode36.DiagnosticSeverity.Error);
  const shown2 = vscode36.languages.getDiagnostics(uri);
  const isShown = (error) => shown2.some((one) => one.code === error.code && one.range.isEqual(error.range));
  const missing = found3.filter((error) => !isShown(error));
  for (const error of missing) error.severity = vscode36.DiagnosticSeverity.Hint;
  const lent = missing.length > 0 ? lend(document, missing) : void 0;
  return { hasErrors, dispose: () => void lent?.dispose() };
}
function isFix(action) {
  return !isCommand(action) && action.kind !== void 0 && vscode36.CodeActionKind.QuickFix.contains(action.kind);
}
function isCommand(action) {
  return typeof action.command === "string";
}
function told(action) {
  if (isCommand(action)) return { title: action.title, kind: null, is_preferred: false };
  return { title: action.title, kind: action.kind?.value ?? null, is_preferred: action.isPreferred ?? false };
}
async function editOf(site, range, title) {
  const first = await offered(site, range, 0);
  const at2 = first.findIndex((action) => action.title === title);
  if (at2 < 0 || at2 >= MAX_FIXES) {
    const titles = first.slice(0, 10).map((action) => JSON.stringify(action.title));
    const others = titles.length === 0 ? "nothing is offered" : `offered are ${titles.join(", ")}`;
    throw new Refusal("not_found", `no quick fix ${JSON.stringify(title)} is offered there by now; ${others}`);
  }
  const fix = fixIn(site, first[at2]) ?? fixIn(
    site,
    (await offered(site, range, at2 + 1)).find((action) => action.title === title)
  );
  if (fix) return fix;
  const why = "runs a command of an extension; only fixes that are edits can be applied";
  throw new Refusal("unsupported", `the quick fix ${JSON.stringify(title)} ${why}`);
}
function fixIn(site, action) {
  if (!action) return void 0;
  const edit = isCommand(action) ? editBehind(site, action) : action.edit;
  if (!edit || edit.size === 0) return void 0;
  const leaves = isCommand(action) ? void 0 : action.command?.command;
  return { edit, leaves: leaves?.startsWith("_typescript.") ? void 0 : leaves };
}
function editBehind({ document }, { command, arguments: args }) {
  if (command !== "_css.applyCodeAction" || !Array.isArray(args)) return void 0;
  const [uri, version, edits] = args;
  if (uri !== document.uri.toString() || version !== document.version || !Array.isArray(edits)) return void 0;
  const edit = new vscode36.WorkspaceEdit();
  for (const { range, newText } of edits) {
    const { start, end } = range;
    edit.replace(document.uri, new vscode36.Range(start.line, start.character, end.line, end.character), newText);
  }
  return edit;
}

// src/verbs/advanced/lens.ts
var MAX_LENSES = 100;
async function get_code_lens(call) {
  const path = call.args.text("path");
  call.args.done();
  const site = await Site.open(call, path);
  const args = [site.document.uri, MAX_LENSES + 1];
  const isEmpty = (lenses2) => !lenses2 || lenses2.length === 0;
  const found3 = await site.ask("shows code lenses", "vscode.executeCodeLensProvider", args, isEmpty) ?? [];
  const lenses = found3.slice(0, MAX_LENSES).map(({ range, command }) => ({
    range: toldSpan(range),
    title: command?.title ?? null,
    command: command?.command ?? null
  }));
  const version = call.desk.texts.of(site.document)?.version ?? site.text.version;
  const isComplete = found3.length <= MAX_LENSES && lenses.every(({ command }) => command !== null);
  return { lenses, version, is_complete: isComplete };
}

// src/verbs/advanced/rename.ts
var vscode37 = __toESM(require("vscode"));
var MAX_NAME = 200;
async function refactor_symbol(call) {
  const path = call.args.text("path");
  const position = call.args.position("position");
  if (!position) throw wrong("`position` is missing: {line, character}");
  const newName = call.args.text("new_name");
  const version = call.args.number("version", 0, Number.MAX_SAFE_INTEGER);
  const isPreview = call.args.flag("preview");
  call.args.done();
  if (newName.trim() === "" || new RegExp("\\p{Cc}", "u").test(newName) || [...newName].length > MAX_NAME) {
    throw wrong(`\`new_name\` must be a name of 1 to ${MAX_NAME} letters`);
  }
  const site = await Site.open(call, path, version);
  const place = site.place(position);
  await site.ready();
  const before = versionsNow(call.desk);
  const plan = await planned(call, await renamed(site, place, newName), before);
  if (plan.length === 0) return { files: [], is_preview: isPreview };
  if (isPreview) return previewed(plan);
  return { files: await made2(call, plan, "rename"), is_preview: false };
}
async function renamed(site, place, newName) {
  const none = "there is nothing at `position` that could be renamed";
  let edit;
  try {
    const command = "vscode.executeDocumentRenameProvider";
    edit = await vscode37.commands.executeCommand(
      command,
      site.document.uri,
      place,
      newName
    ) ?? void 0;
  } catch (error) {
    throw wrong(`${none}: ${Refusal.of(error).message}`);
  }
  if (edit && edit.size > 0) return edit;
  if (speakersOf(site.language).length === 0) throw nobody(site.language, "renames symbols");
  throw wrong(none);
}

// src/verbs/analysis/completions.ts
var vscode38 = __toESM(require("vscode"));

// src/language/rank.ts
function typedIn(before) {
  return (/[\p{L}\p{N}_$]*$/u.exec(before)?.[0] ?? "").toLowerCase();
}
function rankOf(word, typed2) {
  if (word.startsWith(typed2)) return 0;
  if (word.includes(typed2)) return 1;
  let from = 0;
  for (const letter of typed2) {
    const at2 = word.indexOf(letter, from);
    if (at2 < 0) return void 0;
    from = at2 + letter.length;
  }
  return 2;
}

// src/verbs/analysis/completions.ts
var USUAL_LIMIT = 50;
var MAX_LIMIT = 500;
var MAX_WORDS = 1e3;
var KINDS = "text method function constructor field variable class interface module property unit value enum keyword snippet color file reference folder enum_member constant struct event operator type_parameter".split(" ");
async function get_completions(call) {
  const path = call.args.text("path");
  const position = call.args.position("position");
  const limit = call.args.number("limit", 1, MAX_LIMIT) ?? USUAL_LIMIT;
  call.args.done();
  if (!position) throw wrong("`position` is missing: {line, character}");
  const site = await Site.open(call, path);
  const place = site.place(position);
  const command = "vscode.executeCompletionItemProvider";
  const isEmpty = (list2) => !list2 || list2.items.every(isWord);
  const list = await site.ask("completes code", command, [site.document.uri, place], isEmpty);
  const items = list?.items ?? [];
  if (items.every(isWord) && speakersOf(site.language).length === 0) throw nobody(site.language, "completes code");
  const fitting = chosen(items, typedIn(site.document.lineAt(place.line).text.slice(0, place.character)));
  const version = call.desk.texts.of(site.document)?.version ?? site.text.version;
  return {
    items: fitting.slice(0, limit).map(told2),
    is_complete: !(list?.isIncomplete ?? false) && fitting.length <= limit,
    version
  };
}
function isWord(item2) {
  return item2.kind === vscode38.CompletionItemKind.Text;
}
function chosen(items, typed2) {
  const ranked = items.flatMap((item2) => {
    const rank = rankOf((item2.filterText ?? labelOf(item2)).toLowerCase(), typed2);
    return rank === void 0 ? [] : [{ item: item2, rank, sort: item2.sortText ?? labelOf(item2) }];
  });
  ranked.sort((a, b) => a.rank - b.rank || (a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : 0));
  return ranked.map(({ item: item2 }) => item2);
}
function labelOf(item2) {
  return typeof item2.label === "string" ? item2.label : item2.label.label;
}
function told2(item2) {
  const label2 = labelOf(item2);
  const { insertText, documentation } = item2;
  const words2 = typeof documentation === "string" ? documentation : documentation?.value;
  return {
    label: label2,
    kind: item2.kind === void 0 ? null : KINDS[item2.kind] ?? null,
    detail: item2.detail ?? (typeof item2.label === "string" ? null : item2.label.detail ?? item2.label.description ?? null),
    insert_text: typeof insertText === "string" ? insertText : insertText?.value ?? label2,
    // With places to fill in: `${1:name}`.
    ...typeof insertText === "object" ? { is_snippet: true } : {},
    ...words2 ? { documentation: [...words2].slice(0, MAX_WORDS).join("") } : {}
  };
}

// src/verbs/analysis/definition.ts
var import_promises5 = require("node:fs/promises");
var vscode39 = __toESM(require("vscode"));

// src/search/words.ts
var MAX_LINE = 300;
var MAX_LENGTH = 8 * 1024;
function faultOf(words2) {
  if (words2 === "" || /[\r\n]/.test(words2)) return "must be a part of one line";
  if (Buffer.byteLength(words2) > MAX_LENGTH) return `must have at most ${MAX_LENGTH} bytes`;
  return void 0;
}
function find2(text2, words2, ignoresCase, limit) {
  const pattern = new RegExp(words2.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), ignoresCase ? "giu" : "gu");
  const places = [];
  for (const found3 of text2.matchAll(pattern)) {
    places.push([found3.index, found3.index + found3[0].length]);
    if (places.length > limit) break;
  }
  return hitsAt(text2, places, limit);
}
function hitsAt(text2, places, limit) {
  if (places.length === 0) return { hits: [], isCut: false };
  const lines = new Lines(text2);
  const hits = places.slice(0, limit).map(([start, end]) => {
    const range = { start: lines.place(start), end: lines.place(end) };
    return { range, line_text: lineFrom(text2, start - range.start.character), start, end };
  });
  return { hits, isCut: places.length > limit };
}
function lineFrom(text2, start) {
  const line = text2.slice(start, start + 2 * MAX_LINE);
  const end = line.search(/[\r\n]/);
  return [...end < 0 ? line : line.slice(0, end)].slice(0, MAX_LINE).join("");
}

// src/verbs/analysis/definition.ts
var MAX_PLACES2 = 1e3;
var MAX_FILES2 = 100;
var KINDS2 = {
  definition: { command: "vscode.executeDefinitionProvider", what: "finds definitions" },
  declaration: { command: "vscode.executeDeclarationProvider", what: "finds declarations" },
  type_definition: { command: "vscode.executeTypeDefinitionProvider", what: "finds types" },
  implementation: { command: "vscode.executeImplementationProvider", what: "finds implementations" },
  references: { command: "vscode.executeReferenceProvider", what: "finds references" },
  symbols: { command: "vscode.executeDocumentSymbolProvider", what: "lists symbols" }
};
var SYMBOLS = "file module namespace package class method property field constructor enum interface function variable constant string number boolean array object key null enum_member struct event operator type_parameter".split(" ");
async function goto_definition(call) {
  const path = call.args.text("path");
  const position = call.args.position("position");
  const word = call.args.maybeText("kind") ?? "definition";
  call.args.done();
  const kind = Object.hasOwn(KINDS2, word) ? KINDS2[word] : void 0;
  if (!kind) {
    const kinds = "definition, declaration, type_definition, implementation, references or symbols";
    throw wrong(`\`kind\` is ${kinds}, not ${JSON.stringify(word)}`);
  }
  if (!position && word !== "symbols") throw wrong("`position` is missing: {line, character}");
  const site = await Site.open(call, path);
  const place = position && site.place(position);
  if (word === "declaration" && isTypeScript(site.document)) {
    throw new Refusal(
      "unsupported",
      'TypeScript knows no declarations apart from definitions; ask for the kind "definition"'
    );
  }
  const { uri } = site.document;
  const isEmpty = (list) => !list || list.length === 0;
  const found3 = await (word === "symbols" ? site.ask(kind.what, kind.command, [uri], isEmpty).then((symbols) => symbolsOf(uri, symbols ?? [])) : site.ask(kind.what, kind.command, [uri, place], isEmpty).then((all) => (all ?? []).map(foundAt)));
  const lines = new ShownLines(call);
  const locations = [];
  for (const one of found3.slice(0, MAX_PLACES2)) locations.push(await told3(call, one, lines));
  return { locations, is_complete: found3.length <= MAX_PLACES2 };
}
function foundAt(place) {
  if ("targetUri" in place) return { uri: place.targetUri, range: place.targetSelectionRange ?? place.targetRange };
  return { uri: place.uri, range: place.range };
}
function symbolsOf(uri, symbols, within3 = null) {
  return symbols.flatMap((symbol) => {
    const isNested = "children" in symbol;
    const container = within3 ?? ("containerName" in symbol && symbol.containerName || null);
    const about = { name: symbol.name, kind: SYMBOLS[symbol.kind] ?? "symbol", container };
    const found3 = {
      uri: isNested ? uri : symbol.location.uri,
      range: isNested ? symbol.range : symbol.location.range,
      symbol: about
    };
    return [found3, ...isNested ? symbolsOf(uri, symbol.children, symbol.name) : []];
  });
}
async function told3(call, found3, lines) {
  const isFile = found3.uri.scheme === "file";
  const path = isFile ? call.desk.roots.path(found3.uri) ?? realOr(found3.uri.fsPath) : found3.uri.toString();
  const isGranted = isFile && call.desk.roots.holds(path);
  const line = isGranted ? await lines.at(found3.uri, path, found3.range.start.line) : void 0;
  return {
    path,
    range: toldSpan(found3.range),
    is_granted: isGranted,
    ...line === void 0 ? {} : { line_text: line },
    ...found3.symbol ?? {}
  };
}
var ShownLines = class {
  constructor(call) {
    this.call = call;
  }
  call;
  files = /* @__PURE__ */ new Map();
  async at(uri, path, line) {
    const key = uri.toString();
    let lines = this.files.get(key);
    if (!lines) {
      if (this.files.size >= MAX_FILES2 || this.call.stop.isCancellationRequested) return void 0;
      const open = vscode39.workspace.textDocuments.find((document) => document.uri.toString() === key);
      lines = (open ? open.getText() : await textAt(path)).split(/\r\n|\r|\n/);
      this.files.set(key, lines);
    }
    const text2 = lines[line];
    return text2 === void 0 ? void 0 : lineFrom(text2, 0);
  }
};
async function textAt(path) {
  try {
    return (await (0, import_promises5.stat)(path)).size > MAX_BYTES ? "" : await (0, import_promises5.readFile)(path, "utf8");
  } catch {
    return "";
  }
}

// src/verbs/analysis/errors.ts
var vscode40 = __toESM(require("vscode"));
var USUAL_WAIT_MS = 1e4;
var LONGEST_WAIT_MS2 = 6e4;
var MAX_TOLD = 5e3;
var MAX_ASKED2 = 50;
var UNHEARD = "nobody has told errors of this text yet; some extensions look only at files in a tab, where switch_buffer puts them";
var SEVERITIES = ["error", "warning", "information", "hint"];
async function get_errors(call) {
  const path = call.args.maybeText("path");
  const said = call.args.number("wait_ms", 0, LONGEST_WAIT_MS2);
  call.args.done();
  const began = Date.now();
  if (path === void 0) return ofAll(call, began + (said ?? USUAL_WAIT_MS));
  const site = await Site.open(call, path);
  const until = began + (said ?? (isSilent(site.document) ? 0 : USUAL_WAIT_MS));
  return isTypeScript(site.document) && await ofTypeScript(site, until) || ofOthers(site, until);
}
async function ofTypeScript(site, until) {
  const { document, call } = site;
  for (; ; ) {
    const before = document.version;
    const asked = diagnose(document, call.stop);
    const answer = await within2(until, asked, call.stop);
    if (answer === "late") return told4(site, vscode40.languages.getDiagnostics(document.uri), void 0);
    if (!answer) return void 0;
    if (document.version !== before && Date.now() < until && !call.stop.isCancellationRequested) continue;
    const others = vscode40.languages.getDiagnostics(document.uri).filter((one) => !isItsOwn(one));
    return told4(site, [...answer, ...others], document.version - before);
  }
}
async function ofOthers(site, until) {
  const { document, call } = site;
  const known = () => vscode40.languages.getDiagnostics(document.uri);
  if (known().length === 0 && ageOf(document) === void 0) {
    if (speakersOf(site.language).length === 0) throw nobody(site.language, "tells errors");
    await within2(until, site.ready(), call.stop);
  }
  await untilHeard(document, until, call.stop);
  return told4(site, known(), ageOf(document));
}
function told4(site, diagnostics, age) {
  const { desk } = site.call;
  const now = desk.texts.of(site.document)?.version ?? site.text.version;
  const speakers = speakersOf(site.language).map((extension2) => extension2.id);
  return {
    diagnostics: diagnostics.slice(0, MAX_TOLD).map((one) => toldOne(site.text.path, one)),
    version: now,
    analyzed_version: age === void 0 ? null : now - age,
    is_complete: age === 0 && diagnostics.length <= MAX_TOLD,
    server: { name: speakers.join(", ") || null, root: desk.roots.rootOf(site.text.path) ?? null, busy_with: null },
    ...age === void 0 && !hasTab(site.document) ? { why: UNHEARD } : {}
  };
}
async function ofAll({ desk, stop }, until) {
  const found3 = /* @__PURE__ */ new Map();
  for (const [uri, diagnostics] of vscode40.languages.getDiagnostics()) {
    const path = desk.roots.path(uri);
    if (path !== void 0) found3.set(path, diagnostics);
  }
  let isComplete = true;
  let asked = 0;
  for (const { path, document } of desk.texts.all()) {
    const own = isTypeScript(document) && (asked += 1) <= MAX_ASKED2 ? await within2(until, diagnose(document, stop), stop) : void 0;
    if (Array.isArray(own)) found3.set(path, [...own, ...(found3.get(path) ?? []).filter((one) => !isItsOwn(one))]);
    else if (speakersOf(document.languageId).length > 0) isComplete &&= ageOf(document) === 0;
  }
  const told6 = [...found3].flatMap(([path, diagnostics]) => diagnostics.map((one) => toldOne(path, one)));
  const sources = new Set([...found3.values()].flat().map(({ source }) => source));
  return {
    diagnostics: told6.slice(0, MAX_TOLD),
    version: null,
    analyzed_version: null,
    is_complete: isComplete && asked <= MAX_ASKED2 && told6.length <= MAX_TOLD,
    server: [...sources].filter((source) => source !== void 0).sort()
  };
}
function toldOne(path, one) {
  const code = typeof one.code === "object" ? one.code.value : one.code;
  return {
    path,
    range: toldSpan(one.range),
    severity: SEVERITIES[one.severity] ?? "error",
    message: one.message,
    source: one.source ?? null,
    code: code ?? null
  };
}
async function within2(until, doing, stop) {
  let timer;
  let stopped;
  const late = new Promise((done) => {
    timer = setTimeout(() => done("late"), Math.max(0, until - Date.now()));
    stopped = stop.onCancellationRequested(() => done("late"));
  });
  try {
    return await Promise.race([doing, late]);
  } finally {
    clearTimeout(timer);
    stopped?.dispose();
  }
}

// src/verbs/analysis/format.ts
var vscode41 = __toESM(require("vscode"));
async function format_code(call) {
  const path = call.args.text("path");
  const version = call.args.number("version", 0, Number.MAX_SAFE_INTEGER);
  const span2 = call.args.range("range");
  const tabSize = call.args.number("tab_size", 1, 16);
  const insertSpaces = call.args.take("insert_spaces");
  call.args.done();
  if (insertSpaces !== void 0 && typeof insertSpaces !== "boolean")
    throw wrong("`insert_spaces` must be true or false");
  const site = await Site.open(call, path, version);
  const range = span2 && site.span(span2);
  const options = optionsFor(site.document, tabSize, insertSpaces);
  await site.ready();
  const before = versionsNow(call.desk);
  const edits = await formatted(site.document, range, options);
  if (!edits) await refuseNobody(site, range, options);
  const edit = new vscode41.WorkspaceEdit();
  edit.set(site.document.uri, edits ?? []);
  const plan = await planned(call, edit, before);
  const [file] = await made2(call, plan, "format");
  if (file) return { ...file, is_changed: true };
  return {
    path: site.text.path,
    version: before.get(site.document.uri.toString()) ?? site.text.version,
    edits: 0,
    is_changed: false
  };
}
function optionsFor(document, tabSize, insertSpaces) {
  const usual = vscode41.workspace.getConfiguration("editor", document);
  return {
    tabSize: tabSize ?? usual.get("tabSize", 4),
    insertSpaces: insertSpaces ?? usual.get("insertSpaces", true)
  };
}
async function formatted(document, range, options) {
  const { uri } = document;
  const [command, args] = range ? ["vscode.executeFormatRangeProvider", [uri, range, options]] : ["vscode.executeFormatDocumentProvider", [uri, options]];
  return await vscode41.commands.executeCommand(command, ...args) ?? void 0;
}
async function refuseNobody(site, range, options) {
  const odd = { tabSize: options.tabSize === 7 ? 5 : 7, insertSpaces: !options.insertSpaces };
  if (await formatted(site.document, range, odd)) return;
  const isFormatter = ({ packageJSON }) => {
    const { categories } = packageJSON;
    return categories?.includes("Formatters") ?? false;
  };
  const formatters = vscode41.extensions.all.filter(isFormatter);
  if (speakersOf(site.language).length + formatters.length === 0) throw nobody(site.language, "formats code");
}

// src/verbs/buffers.ts
var vscode43 = __toESM(require("vscode"));

// src/asked.ts
var MAX_EDITS3 = 1e3;
var MAX_FILES3 = 200;
function askedEdits(args) {
  const listed = args.list("edits");
  const [oldText, newText] = [args.take("old_text"), args.take("new_text")];
  if (listed) {
    if (oldText !== void 0 || newText !== void 0) {
      throw wrong("give `edits`, or `old_text` and `new_text`, not both");
    }
    return read(listed);
  }
  if (oldText === void 0 && newText === void 0) return void 0;
  return read([{ old_text: oldText ?? null, new_text: newText ?? null }]);
}
function refuseBlind(edits, namesVersion) {
  if (namesVersion || !edits.some((edit) => edit.range && edit.oldText === void 0)) return;
  throw wrong(
    "a `range` is about one version of the text: give `version` (or `digest`) as open_file told it, or the `old_text` that stands there"
  );
}
function placed(text2, edits) {
  const lines = new Lines(text2);
  return edits.map((edit, i) => {
    const found3 = edit.range ? inRange(text2, lines, edit.range, edit.oldText) : atWords(text2, edit.oldText ?? "");
    if (typeof found3 === "string") throw wrong(`edit ${i}: ${found3}`);
    return { start: found3[0], end: found3[1], newText: edit.newText };
  });
}
function inRange(text2, lines, range, oldText) {
  const [start, end] = [lines.offset(range.start), lines.offset(range.end)];
  if (typeof start === "string") return start;
  if (typeof end === "string") return end;
  if (start > end) return "`range` ends before it starts";
  if (oldText !== void 0 && text2.slice(start, end) !== oldText) {
    return "what stands in `range` is not `old_text`; open the file again";
  }
  return [start, end];
}
function atWords(text2, oldText) {
  const start = text2.indexOf(oldText);
  if (start < 0) return "`old_text` is not in the text; open it again";
  if (text2.indexOf(oldText, start + 1) >= 0) {
    return "`old_text` is in the text more than once; give more of what stands around it";
  }
  return [start, start + oldText.length];
}
function read(listed) {
  if (listed.length === 0 || listed.length > MAX_EDITS3) {
    throw wrong(`\`edits\` must hold 1 to ${MAX_EDITS3} edits, not ${listed.length}`);
  }
  return listed.map((edit, i) => {
    if (kindOf(edit) !== "an object") throw wrong(`edit ${i} must be an object, not ${kindOf(edit)}`);
    try {
      return readOne(new Args(edit));
    } catch (error) {
      throw wrong(`edit ${i}: ${Refusal.of(error).message}`);
    }
  });
}
function readOne(args) {
  const range = args.take("range");
  const oldText = args.maybeText("old_text");
  const newText = args.text("new_text");
  args.done();
  if (range !== void 0) return { range: spanOf("range", range), oldText, newText };
  if (oldText === void 0) throw wrong("it needs a `range` or an `old_text`");
  if (oldText === "") throw wrong("`old_text` is empty");
  return { range: void 0, oldText, newText };
}

// src/saving.ts
var import_promises6 = require("node:fs/promises");
var vscode42 = __toESM(require("vscode"));
var SAVED_WITHIN_MS = 1e3;
async function save(desk, text2, overwrites, session) {
  const there = await onDisk(text2.path);
  if (!overwrites && await desk.texts.isChangedOnDisk(text2)) {
    const why = there ? "somebody else has changed the file; `overwrite` replaces what they wrote" : "somebody else has removed the file; `overwrite` makes it again";
    throw new Refusal("changed", `${JSON.stringify(text2.path)}: ${why}`);
  }
  desk.doing.note("file_saved", text2.path, session);
  await write(desk, text2, there);
}
async function discard(desk, text2, session) {
  const { document, path, uri } = text2;
  const there = await onDisk(path);
  const goal = there && asText(there);
  if (goal !== void 0) {
    const edits = (now2) => {
      if (now2.version !== text2.version) throw stale(now2);
      const content = document.getText();
      const lineBreak = document.eol === vscode42.EndOfLine.CRLF ? "\r\n" : "\n";
      const edit = difference(content, withBreaks(goal, lineBreak));
      return edit.start === edit.end && edit.newText === "" ? [] : [edit];
    };
    await desk.texts.edit([{ uri, edits }], session, "discard");
  }
  const end = desk.doing.note("discard", path, session);
  await write(desk, text2, there);
  end();
  if (!there) return vscode42.workspace.fs.delete(uri);
  const now = await onDisk(path);
  if (now && Buffer.compare(now, there) === 0) return;
  await vscode42.workspace.fs.writeFile(uri, there);
  await desk.texts.caughtUp(path);
}
async function write(desk, text2, there) {
  const { document, path } = text2;
  if (there) {
    await (0, import_promises6.access)(path, import_promises6.constants.W_OK).catch(() => {
      throw new Refusal("failed", `${JSON.stringify(path)}: it is read-only`);
    });
    if (await desk.texts.isChangedOnDisk(text2)) await (0, import_promises6.utimes)(path, /* @__PURE__ */ new Date(0), /* @__PURE__ */ new Date(0));
  }
  const before = document.version;
  await document.save();
  await desk.texts.until(() => !document.isDirty, SAVED_WITHIN_MS);
  if (document.isDirty && document.version === before) {
    throw new Refusal("failed", `${JSON.stringify(path)}: the editor did not save it`);
  }
}

// src/verbs/buffers.ts
async function getBuffers({ args, desk }) {
  args.done();
  const active = vscode43.window.activeTextEditor?.document;
  const buffers2 = await Promise.all(
    desk.texts.all().map(async (text2) => {
      const content = text2.document.getText();
      return {
        path: text2.path,
        version: text2.version,
        is_dirty: text2.isDirty,
        digest: digestOf(content),
        language: languageOf(text2),
        lines: lineCount(content),
        is_changed_on_disk: text2.isDirty && await desk.texts.isChangedOnDisk(text2).catch(() => true),
        is_active: text2.document === active
      };
    })
  );
  return { buffers: buffers2, ui: true };
}
async function editBuffer({ args, desk, session, stop }) {
  const files2 = args.list("files");
  if (files2) {
    args.done();
    if (files2.length === 0 || files2.length > MAX_FILES3) {
      throw wrong(`\`files\` must hold 1 to ${MAX_FILES3} files, not ${files2.length}`);
    }
    const orders = [];
    for (const [i, file] of files2.entries()) orders.push(await numbered(i, () => orderOf(file, desk, i, stop)));
    const texts2 = await desk.texts.edit(orders, session);
    return { files: texts2.map((text2) => edited(text2)) };
  }
  const { path, fits, namesVersion } = readTarget(args, stop);
  const undo = args.number("undo", 1, MAX_EDITS3);
  const redo = args.number("redo", 1, MAX_EDITS3);
  const edits = askedEdits(args);
  args.done();
  const given = [undo, redo, edits].filter((one) => one !== void 0).length;
  if (given === 0) {
    throw wrong("`edits` is missing: an array of {range, new_text} or {old_text, new_text}; or `undo`, or `redo`");
  }
  if (given > 1) throw wrong("give one of `edits`, `undo` and `redo`");
  const uri = await desk.roots.file(path);
  if (edits) {
    refuseBlind(edits, namesVersion);
    const [text2] = await desk.texts.edit([{ uri, edits: planned2(edits, fits) }], session);
    return { ...edited(text2), edits: edits.length };
  }
  const way = undo === void 0 ? "redo" : "undo";
  return edited(await desk.texts.retrace(uri, fits, way, undo ?? redo ?? 1, session));
}
async function orderOf(file, desk, index, stop) {
  const args = Args.members("files", file);
  const { path, fits, namesVersion } = readTarget(args, stop);
  const edits = askedEdits(args);
  args.done();
  if (!edits) throw wrong("`edits` is missing");
  refuseBlind(edits, namesVersion);
  const plan = planned2(edits, fits);
  return { uri: await desk.roots.file(path), edits: (text2) => numberedNow(index, () => plan(text2)) };
}
function readTarget(args, stop) {
  const path = args.text("path");
  const version = args.number("version", 0, Number.MAX_SAFE_INTEGER);
  const digest = args.maybeText("digest");
  const fits = (text2) => {
    if (stop.isCancellationRequested) throw new Refusal("timed_out", "nobody waits for this edit any more");
    const isStale = version !== void 0 && version !== text2.version;
    if (isStale || digest !== void 0 && digest !== digestOf(text2.document.getText())) throw stale(text2);
  };
  return { path, fits, namesVersion: version !== void 0 || digest !== void 0 };
}
function planned2(edits, fits) {
  return (text2) => {
    fits(text2);
    return placed(text2.document.getText(), edits);
  };
}
function edited(text2) {
  const digest = digestOf(text2.document.getText());
  return { path: text2.path, version: text2.version, digest, is_dirty: text2.isDirty };
}
async function numbered(index, doing) {
  try {
    return await doing();
  } catch (error) {
    throw numberedRefusal(index, error);
  }
}
function numberedNow(index, doing) {
  try {
    return doing();
  } catch (error) {
    throw numberedRefusal(index, error);
  }
}
function numberedRefusal(index, error) {
  const { code, message } = Refusal.of(error);
  return new Refusal(code, `file ${index}: ${message}`);
}
async function saveBuffer({ args, desk, session }) {
  const path = args.maybeText("path");
  const savesAll = args.flag("all");
  const version = args.number("version", 0, Number.MAX_SAFE_INTEGER);
  const overwrites = args.flag("overwrite");
  args.done();
  if (path !== void 0 && !savesAll) {
    const text2 = await desk.texts.open(await desk.roots.file(path));
    if (version !== void 0 && version !== text2.version) {
      const message = `${JSON.stringify(path)}: version ${version} was to be saved, and it is at ${text2.version}`;
      throw new Refusal("changed", message);
    }
    return saved(desk, text2, overwrites, session);
  }
  if (path !== void 0 || !savesAll || version !== void 0) throw wrong("give `path`, or `all`: true");
  const all = [];
  for (const text2 of desk.texts.all().filter((one) => one.isDirty)) {
    all.push(
      await saved(desk, text2, overwrites, session).catch((error) => {
        const { code, message } = Refusal.of(error);
        return { path: text2.path, error: { code, message } };
      })
    );
  }
  return { saved: all };
}
async function saved(desk, text2, overwrites, session) {
  const { document, path } = text2;
  if (text2.isDirty) await save(desk, text2, overwrites, session);
  const version = desk.texts.of(document)?.version ?? text2.version;
  const content = document.getText();
  return { path, version, digest: digestOf(content), bytes: Buffer.byteLength(content), is_dirty: document.isDirty };
}
async function closeBuffer({ args, desk, session }) {
  const written = args.text("path");
  const discards = args.flag("discard");
  args.done();
  const path = await desk.roots.real(written);
  const text2 = desk.texts.at(path);
  if (!text2) throw new Refusal("not_found", `${JSON.stringify(written)} is not open`);
  if (text2.isDirty && !discards) {
    const why = "it has unsaved changes; save_buffer writes them, `discard` drops them";
    throw new Refusal("changed", `${JSON.stringify(written)}: ${why}`);
  }
  desk.doing.note("file_closed", path, session);
  if (text2.isDirty) await discard(desk, text2, session);
  const tabs = vscode43.window.tabGroups.all.flatMap((group) => group.tabs.filter((tab) => isOf(tab, text2.uri)));
  if (tabs.length > 0) await vscode43.window.tabGroups.close(tabs, true);
  desk.texts.close(path);
  return { path, discarded: text2.isDirty };
}
function isOf(tab, uri) {
  return tab.input instanceof vscode43.TabInputText && tab.input.uri.toString() === uri.toString();
}
var buffers = {
  get_buffers: getBuffers,
  edit_buffer: editBuffer,
  save_buffer: saveBuffer,
  close_buffer: closeBuffer
};

// src/verbs/files.ts
var import_promises7 = require("node:fs/promises");
var nodePath5 = __toESM(require("node:path"));
var vscode44 = __toESM(require("vscode"));
var MOST_LINES2 = 4294967295;
async function openFile({ args, desk }) {
  const path = args.text("path");
  const offset = args.number("offset", 0, MOST_LINES2) ?? 0;
  const limit = args.number("limit", 1, MOST_LINES2);
  args.done();
  const looked = await desk.texts.look(await desk.roots.file(path));
  if ("document" in looked) return opened(looked, offset, limit);
  const { bytes } = looked;
  return {
    path: looked.path,
    bytes: bytes.length,
    digest: digestOf(bytes),
    encoding: "base64",
    content: Buffer.from(bytes).toString("base64"),
    version: null,
    is_dirty: false,
    language: null
  };
}
function opened(text2, offset, limit) {
  const content = text2.document.getText();
  const lines = lineCount(content);
  const answer = {
    path: text2.path,
    bytes: Buffer.byteLength(content),
    digest: digestOf(content),
    encoding: "utf-8",
    lines,
    version: text2.version,
    is_dirty: text2.isDirty,
    language: languageOf(text2)
  };
  if (offset === 0 && limit === void 0) return { ...answer, content };
  const all = content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const end = limit === void 0 ? lines : Math.min(lines, offset + limit);
  return { ...answer, content: all.slice(offset, end).join(""), offset, is_partial: offset > 0 || end < lines };
}
async function createFile({ args, desk }) {
  const written = args.text("path");
  const content = args.content("content");
  const makesParents = args.flag("parents");
  const kind = args.choice("kind", ["file", "folder"]);
  args.done();
  if (kind === "folder" && content) throw wrong("a folder has no `content`");
  const path = await desk.roots.realName(written);
  if (!makesParents && !await found(nodePath5.dirname(path))) {
    throw new Refusal("not_found", `${JSON.stringify(written)}: the folder for it is not there; \`parents\` makes it`);
  }
  if (await found(path)) {
    throw wrong(`${JSON.stringify(written)}: it is already there; write_file and edit_buffer change what is there`);
  }
  const uri = desk.roots.uri(path);
  if (kind === "folder") {
    await vscode44.workspace.fs.createDirectory(uri);
    return { path };
  }
  const bytes = content ?? new Uint8Array();
  checkSize(bytes.length);
  const edit = new vscode44.WorkspaceEdit();
  edit.createFile(uri, { contents: bytes, overwrite: false });
  await made3(edit, async () => {
    if (await found(path))
      throw new Refusal("changed", `${JSON.stringify(written)}: somebody else has made it meanwhile`);
  });
  return { path, bytes: bytes.length, digest: digestOf(bytes) };
}
async function writeFile({ args, desk, session }) {
  const written = args.text("path");
  const content = args.content("content");
  if (!content) throw wrong("`content` is missing: a string");
  const madeFor = args.maybeText("digest");
  args.done();
  checkSize(content.length);
  const path = await desk.roots.real(written);
  const there = await onDisk(path);
  if (!there) throw new Refusal("not_found", `there is no file ${JSON.stringify(written)}`);
  await (0, import_promises7.access)(path, import_promises7.constants.W_OK).catch(() => {
    throw new Refusal("failed", `${JSON.stringify(written)}: it is read-only`);
  });
  refuseDirty(desk, path);
  if (madeFor !== void 0 && madeFor !== digestOf(there) && madeFor !== openedDigest(desk, path, there)) {
    const why = "it is not the file that the change was made for; look again, then try again";
    throw new Refusal("changed", `${JSON.stringify(written)}: ${why}`);
  }
  desk.texts.follows(path, content, session);
  await vscode44.workspace.fs.writeFile(desk.roots.uri(path), content);
  await desk.texts.caughtUp(path);
  return { path, bytes: content.length, digest: digestOf(content) };
}
function openedDigest(desk, path, there) {
  const text2 = desk.texts.at(path)?.document.getText();
  const now = asText(there);
  return text2 !== void 0 && now !== void 0 && isSameText(text2, now) ? digestOf(text2) : void 0;
}
async function deleteFile({ args, desk }) {
  const written = args.text("path");
  args.done();
  const path = await desk.roots.realName(written);
  const what = await existing(written, path);
  if (desk.roots.all.includes(path)) throw wrong(`${JSON.stringify(written)}: it is a folder of this window itself`);
  if (what === "folder" && (await (0, import_promises7.readdir)(path)).length > 0) {
    throw wrong(`${JSON.stringify(written)}: the folder is not empty; delete what is in it first`);
  }
  refuseDirty(desk, path);
  const edit = new vscode44.WorkspaceEdit();
  edit.deleteFile(desk.roots.uri(path), { recursive: false, ignoreIfNotExists: false });
  await made3(edit, async () => {
    if (!await found(path))
      throw new Refusal("changed", `${JSON.stringify(written)}: somebody else has removed it meanwhile`);
  });
  desk.texts.close(path);
  return { path, what };
}
async function renameFile({ args, desk }) {
  const written = args.text("path");
  const newWritten = args.text("new_path");
  const overwrite = args.flag("overwrite");
  args.done();
  const path = await desk.roots.realName(written);
  const newPath = await desk.roots.realName(newWritten);
  await existing(written, path);
  if (!await found(nodePath5.dirname(newPath))) {
    throw new Refusal("not_found", `${JSON.stringify(newWritten)}: the folder for it is not there`);
  }
  if (!overwrite && await found(newPath)) {
    throw wrong(`${JSON.stringify(newWritten)}: it is already there; \`overwrite\` replaces it`);
  }
  refuseDirty(desk, newPath);
  const edit = new vscode44.WorkspaceEdit();
  edit.renameFile(desk.roots.uri(path), desk.roots.uri(newPath), { overwrite });
  await made3(edit, async () => {
    if (!await found(path)) throw new Refusal("changed", `${JSON.stringify(written)}: it has changed meanwhile`);
    if (!overwrite && await found(newPath)) {
      throw new Refusal("changed", `${JSON.stringify(newWritten)}: somebody else has made it meanwhile`);
    }
  });
  return { path, new_path: newPath };
}
async function made3(edit, why) {
  if (await vscode44.workspace.applyEdit(edit)) return;
  await why();
  throw new Refusal("failed", "the editor did not do it, and does not say why");
}
function refuseDirty(desk, path) {
  const [dirty] = desk.texts.unsaved(path);
  if (dirty === void 0) return;
  const how = "save_buffer writes them, close_buffer with `discard` drops them";
  throw new Refusal("changed", `${JSON.stringify(dirty)} has unsaved changes; ${how}`);
}
async function found(path) {
  try {
    const stats = await (0, import_promises7.lstat)(path);
    if (stats.isSymbolicLink()) return "link";
    if (stats.isDirectory()) return "folder";
    return stats.isFile() ? "file" : "other";
  } catch {
    return void 0;
  }
}
async function existing(written, path) {
  const what = await found(path);
  if (what === void 0) throw new Refusal("not_found", `there is no file ${JSON.stringify(written)}`);
  return what;
}
var files = {
  open_file: openFile,
  create_file: createFile,
  write_file: writeFile,
  delete_file: deleteFile,
  rename_file: renameFile
};

// src/verbs/panes.ts
var vscode45 = __toESM(require("vscode"));
var MAX_PANES = 16;
async function switchBuffer({ args, desk, session }) {
  const path = args.text("path");
  args.done();
  const text2 = await desk.texts.open(await desk.roots.file(path));
  const isShown = vscode45.window.activeTextEditor?.document === text2.document;
  desk.doing.note("tab_switched", text2.path, session);
  await show(text2.document);
  const pane = vscode45.window.tabGroups.activeTabGroup.viewColumn;
  if (isShown) desk.voice.tell("tab_switched", text2.path, { pane, ...desk.doing.take("tab_switched", text2.path) });
  return { path: text2.path, pane, is_active: true, ui: true };
}
async function splitPane({ args, desk, session }) {
  const path = args.maybeText("path");
  const direction = args.choice("direction", ["right", "down"]);
  args.done();
  const { tabGroups } = vscode45.window;
  const text2 = path === void 0 ? activeText(desk) : await desk.texts.open(await desk.roots.file(path));
  if (tabGroups.all.length >= MAX_PANES) {
    throw wrong(`there are ${MAX_PANES} panes already; close a buffer to close its panes`);
  }
  desk.doing.note("pane_split", "", session);
  desk.doing.note("tab_switched", text2.path, session);
  await vscode45.commands.executeCommand(
    direction === "down" ? "workbench.action.newGroupBelow" : "workbench.action.newGroupRight"
  );
  await vscode45.window.showTextDocument(text2.document, { viewColumn: vscode45.ViewColumn.Active, preview: false });
  const panes2 = tabGroups.all.map((group) => ({
    id: group.viewColumn,
    path: pathIn(group, desk) ?? null,
    is_active: group.isActive
  }));
  const pane = tabGroups.activeTabGroup.viewColumn;
  desk.voice.tell("pane_split", text2.path, { pane, direction, by: session });
  return { pane, panes: panes2, ui: true };
}
function activeText(desk) {
  const document = vscode45.window.activeTextEditor?.document;
  const text2 = document && desk.texts.of(document);
  if (!text2) throw new Refusal("bad_arguments", "no buffer is active; name one by `path`");
  return text2;
}
var panes = {
  switch_buffer: switchBuffer,
  split_pane: splitPane
};

// src/verbs/search/place.ts
var import_promises8 = require("node:fs/promises");
var nodePath6 = __toESM(require("node:path"));
var vscode46 = __toESM(require("vscode"));

// src/search/glob.ts
var MAX_LENGTH2 = 1024;
var MAX_ALTERNATIVES = 64;
var Glob = class _Glob {
  constructor(alternatives, isName) {
    this.alternatives = alternatives;
    this.isName = isName;
  }
  alternatives;
  isName;
  /** Understands a pattern, or says in words why it is none. */
  static of(pattern) {
    if (pattern === "" || Buffer.byteLength(pattern) > MAX_LENGTH2) return `must have 1 to ${MAX_LENGTH2} bytes`;
    const all = expanded(pattern);
    if (typeof all === "string") return all;
    const alternatives = [];
    let isName = true;
    for (const one of all) {
      const parts = one.split("/").filter((part) => part !== ".");
      if (parts.includes("..") || one.startsWith("/")) return "is about names beneath `path`; it cannot lead out of it";
      isName &&= parts.length === 1;
      const understood = parts.filter((part) => part !== "").map(partOf);
      const fault = understood.find((part) => typeof part === "object" && "fault" in part);
      if (fault) return fault.fault;
      alternatives.push(understood);
    }
    return new _Glob(alternatives, isName);
  }
  /** Tells whether a path, relative to the folder that is searched, is one of those that are meant. */
  matches(path) {
    const names = this.isName ? [path.slice(path.lastIndexOf("/") + 1)] : path.split("/");
    return this.alternatives.some((parts) => matchesParts(parts, names));
  }
};
function partOf(part) {
  if (part === "**") return "any-folders";
  const tokens = [];
  const letters = [...part];
  for (let i = 0; i < letters.length; i += 1) {
    const letter = letters[i] ?? "";
    if (letter === "*") tokens.push("any");
    else if (letter === "?") tokens.push("any-one");
    else if (letter === "\\") {
      const escaped2 = letters[i += 1];
      if (escaped2 === void 0) return { fault: "ends in a backslash" };
      tokens.push({ one: escaped2 });
    } else if (letter === "[") {
      const set = setFrom(letters, i + 1);
      if (!set) return { fault: "has a `[` without a `]`" };
      tokens.push(set.token);
      i = set.end;
    } else tokens.push({ one: letter });
  }
  return tokens;
}
function setFrom(letters, from) {
  const ranges = [];
  const isNot = letters[from] === "!" || letters[from] === "^";
  let i = isNot ? from + 1 : from;
  for (; i < letters.length; i += 1) {
    const first = letters[i] ?? "";
    if (first === "]" && ranges.length > 0) return { token: { ranges, isNot }, end: i };
    const last = letters[i + 1] === "-" ? letters[i + 2] : void 0;
    if (last !== void 0 && last !== "]") {
      ranges.push([first, last]);
      i += 2;
    } else ranges.push([first, first]);
  }
  return void 0;
}
function expanded(pattern) {
  const open = [pattern];
  const done = [];
  for (let one = open.pop(); one !== void 0; one = open.pop()) {
    const close2 = one.indexOf("}");
    if (close2 < 0) {
      if (one.includes("{")) return "has a `{` without a `}`";
      done.push(one);
      continue;
    }
    const start = one.lastIndexOf("{", close2);
    if (start < 0) return "has a `}` without a `{`";
    const [before, after] = [one.slice(0, start), one.slice(close2 + 1)];
    for (const middle of one.slice(start + 1, close2).split(",")) open.push(before + middle + after);
    if (open.length + done.length > MAX_ALTERNATIVES) return `stands for more than ${MAX_ALTERNATIVES} patterns`;
  }
  return done;
}
function matchesParts(parts, names) {
  let reached = names.map(() => false);
  reached.unshift(true);
  for (const part of parts) {
    const next = reached.map(() => false);
    if (part === "any-folders") {
      const first = reached.indexOf(true);
      if (first >= 0) next.fill(true, first);
    } else {
      names.forEach((name, i) => {
        next[i + 1] = (reached[i] ?? false) && matchesName(part, [...name]);
      });
    }
    reached = next;
  }
  return reached[names.length] ?? false;
}
function matchesName(tokens, letters) {
  let [i, j] = [0, 0];
  let star;
  for (; ; ) {
    const [token, letter] = [tokens[j], letters[i]];
    if (token === "any") {
      star = { at: j, from: i };
      j += 1;
    } else if (token !== void 0 && letter !== void 0 && isOf2(token, letter)) {
      [i, j] = [i + 1, j + 1];
    } else if (token === void 0 && letter === void 0) {
      return true;
    } else if (star && star.from < letters.length) {
      star.from += 1;
      [i, j] = [star.from, star.at + 1];
    } else {
      return false;
    }
  }
}
function isOf2(token, letter) {
  if (token === "any-one") return true;
  if ("one" in token) return token.one === letter;
  return token.ranges.some(([first, last]) => first <= letter && letter <= last) !== token.isNot;
}

// src/search/ripgrep.ts
var import_node_child_process2 = require("node:child_process");
var import_node_fs3 = require("node:fs");
var import_node_path4 = require("node:path");
var import_node_readline = require("node:readline");
var MAX_LENGTH3 = 8 * 1024;
var WITHIN_MS3 = 2e4;
var MAX_FILE = "64M";
var MAX_COMPLAINT = 1e3;
var Ripgrep = class _Ripgrep {
  constructor(program) {
    this.program = program;
  }
  program;
  /** Finds it in the editor's own folder. Not on PATH: that would be another program by the same name. */
  static in(appRoot) {
    const name = process.platform === "win32" ? "rg.exe" : "rg";
    const machine = `${process.platform}-${process.arch}`;
    const homes = [
      (0, import_node_path4.join)("@vscode", "ripgrep", "bin"),
      (0, import_node_path4.join)("@vscode", "ripgrep-universal", "bin", machine),
      (0, import_node_path4.join)("@vscode", `ripgrep-${machine}`, "bin")
    ];
    const folders = ["node_modules", "node_modules.asar.unpacked"];
    const programs = folders.flatMap((folder) => homes.map((home2) => (0, import_node_path4.join)(appRoot, folder, home2, name)));
    const program = programs.find((path) => (0, import_node_fs3.existsSync)(path));
    return program === void 0 ? void 0 : new _Ripgrep(program);
  }
  /** Searches all files beneath a folder, by path. `visit` returns whether it wants more. */
  async folder(pattern, folder, scope, stop, visit) {
    const args = ["--json", "--sort=path", ...wordsOf(pattern), ...rulesOf(scope), "--", "."];
    return this.search(args, { cwd: folder }, stop, visit);
  }
  /** Searches a text, and gives the places as editors count them: by UTF-16 units. */
  async text(pattern, text2, limit, stop) {
    const bytes = Buffer.from(text2, "utf8");
    const places = [];
    let [byte, unit] = [0, 0];
    const unitAt = (to) => {
      unit += bytes.toString("utf8", byte, to).length;
      byte = to;
      return unit;
    };
    await this.search(["--json", "--text", ...wordsOf(pattern), "-"], { input: bytes }, stop, (found3) => {
      for (const [start, end] of found3.places) {
        places.push([unitAt(found3.offset + start), unitAt(found3.offset + end)]);
        if (places.length > limit) return false;
      }
      return true;
    });
    return places;
  }
  /** Returns what each place that `text` finds is replaced by, with `$1` and `${name}` for parts of it. */
  async replaced(pattern, text2, newText, stop) {
    const mark = `prism-${Math.random().toString(36).slice(2)}`;
    const args = [
      "--text",
      "--only-matching",
      "--no-filename",
      "--no-line-number",
      "--color=never",
      "--no-heading",
      `--replace=${mark}${newText}${mark}`,
      ...wordsOf(pattern),
      "-"
    ];
    let output = "";
    await this.run(args, { input: Buffer.from(text2, "utf8") }, stop, (piece) => {
      output += piece;
      return output.length <= MAX_REPLACED;
    });
    if (output.length > MAX_REPLACED) {
      throw new Refusal(
        "too_large",
        "it would put in more than 8 MiB; `path` and `glob` narrow it down. Nothing was changed"
      );
    }
    return output.split(mark).filter((_, i) => i % 2 === 1);
  }
  /** Lists the files beneath a folder that a search looks at. `visit` returns whether it wants more. */
  async files(folder, scope, stop, visit) {
    await this.run(
      ["--files", "--no-config", ...rulesOf(scope), "--", "."],
      { cwd: folder },
      stop,
      void 0,
      (line) => visit(line.replace(/^\.\//, ""))
    );
  }
  async search(args, from, stop, visit) {
    let hasEnded = false;
    const run = await this.run(args, from, stop, void 0, (line) => {
      const message = JSON.parse(line);
      if (message.type === "summary") hasEnded = true;
      return message.type === "match" ? visit(foundIn(message.data)) : true;
    });
    if (run.code === 2 && !hasEnded) {
      const why = run.complaint.trim().replace(/^rg: /, "");
      const hint = why.includes("not allowed in a regex") ? "; `multiline` lets a match go over several lines" : "";
      throw new Refusal("bad_arguments", `\`pattern\` is no expression that can be looked for: ${why}${hint}`);
    }
    return { isComplete: hasEnded && run.code !== 2 };
  }
  /** Runs it. It is ended when nobody waits for it any more, when it has taken too long, or when enough was seen. */
  run(args, from, stop, piece, line) {
    return new Promise((resolve2, reject) => {
      const child = (0, import_node_child_process2.spawn)(this.program, args, { cwd: from.cwd, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
      const end = () => void child.kill("SIGKILL");
      const timer = setTimeout(end, WITHIN_MS3);
      const stopped = stop.onCancellationRequested(end);
      let [complaint, wantsMore] = ["", true];
      const see = (wants) => {
        if (!wantsMore) return;
        try {
          wantsMore = wants();
        } catch (error) {
          wantsMore = false;
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        if (!wantsMore) end();
      };
      child.stdout.setEncoding("utf8");
      child.stderr.setEncoding("utf8");
      child.stderr.on("data", (text2) => {
        if (complaint.length < MAX_COMPLAINT) complaint += text2.slice(0, MAX_COMPLAINT - complaint.length);
      });
      if (piece) child.stdout.on("data", (text2) => see(() => piece(text2)));
      const lines = line && (0, import_node_readline.createInterface)({ input: child.stdout, crlfDelay: Infinity });
      const isRead = lines ? new Promise((done) => lines.once("close", done)) : Promise.resolve();
      lines?.on("line", (text2) => see(() => line?.(text2) ?? true));
      child.stdin.on("error", () => void 0);
      child.stdin.end(from.input ?? "");
      const settled = () => {
        clearTimeout(timer);
        stopped.dispose();
      };
      child.once("error", (error) => {
        settled();
        reject(new Refusal("failed", `the editor's search cannot be started: ${error.message}`));
      });
      child.once("close", (code) => {
        settled();
        void isRead.then(() => resolve2({ code, complaint }));
      });
    });
  }
};
var MAX_REPLACED = 8 << 20;
function faultOf2(expression2) {
  if (expression2 === "") return "is empty";
  if (Buffer.byteLength(expression2) > MAX_LENGTH3) return `must have at most ${MAX_LENGTH3} bytes`;
  return void 0;
}
function wordsOf(pattern) {
  const words2 = ["--no-config", "--crlf", pattern.ignoresCase ? "--ignore-case" : "--case-sensitive"];
  if (pattern.isFixed) words2.push("--fixed-strings");
  if (pattern.isWord) words2.push("--word-regexp");
  if (pattern.isMultiline) words2.push("--multiline");
  words2.push(`--regexp=${pattern.text}`);
  return words2;
}
function rulesOf({ also, isRoot }) {
  const rules = ["--no-require-git", "--no-ignore-global", "--no-messages", `--max-filesize=${MAX_FILE}`];
  if (isRoot) rules.push("--no-ignore-parent");
  if (also.hidden) rules.push("--hidden");
  if (also.ignored) rules.push("--no-ignore");
  if (also.hidden && !also.ignored) rules.push("--glob=!.git");
  return rules;
}
function foundIn(data) {
  return {
    path: data.path ? bytesOf(data.path).toString("utf8").replace(/^\.\//, "") : "",
    lines: bytesOf(data.lines),
    line: (data.line_number ?? 1) - 1,
    offset: data.absolute_offset,
    places: data.submatches.map(({ start, end }) => [start, end])
  };
}
function bytesOf(text2) {
  return "text" in text2 ? Buffer.from(text2.text, "utf8") : Buffer.from(text2.bytes, "base64");
}

// src/verbs/search/place.ts
var MOST_MATCHES = 1e4;
var USUAL_MATCHES = 1e3;
var ripgrep = Ripgrep.in(vscode46.env.appRoot);
function takeGlob(call) {
  const written = call.args.maybeText("glob");
  if (written === void 0) return void 0;
  const glob = Glob.of(written);
  if (typeof glob === "string") throw wrong(`\`glob\` ${glob}`);
  return glob;
}
async function groundAt(call, path, glob, also) {
  const { roots } = call.desk;
  const real = path === void 0 ? roots.first : await roots.real(path);
  const wants = (relative3) => glob?.matches(relative3) ?? true;
  try {
    const isFolder = (await (0, import_promises8.stat)(real)).isDirectory();
    return { path: real, isFolder, also, isRoot: roots.all.includes(real), wants };
  } catch {
    if (call.desk.texts.at(real)) return { path: real, isFolder: false, also, isRoot: false, wants };
    throw new Refusal("not_found", `there is no ${JSON.stringify(path ?? real)}`);
  }
}
async function unsavedIn(call, ground) {
  const unsaved = /* @__PURE__ */ new Map();
  for (const text2 of call.desk.texts.all()) {
    const relative3 = nodePath6.relative(ground.path, text2.path);
    if (text2.isDirty && isBeneath(text2.path, ground.path) && ground.wants(relative3)) unsaved.set(relative3, text2);
  }
  if (unsaved.size === 0 || !ripgrep) return unsaved;
  const left2 = new Set(unsaved.keys());
  await ripgrep.files(ground.path, ground, call.stop, (path) => {
    left2.delete(path);
    return left2.size > 0;
  });
  for (const path of left2) {
    const isThere = await (0, import_promises8.stat)(nodePath6.join(ground.path, path)).then(
      () => true,
      () => false
    );
    if (isThere) unsaved.delete(path);
  }
  return unsaved;
}

// src/verbs/search/find.ts
async function find_in_file(call) {
  const path = call.args.text("path");
  const words2 = call.args.text("text");
  const ignoresCase = call.args.flag("ignore_case");
  const limit = call.args.number("limit", 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  const fault = faultOf(words2);
  if (fault !== void 0) throw wrong(`\`text\` ${fault}`);
  const text2 = await call.desk.texts.open(await call.desk.roots.file(path));
  const content = text2.document.getText();
  const { hits, isCut } = find2(content, words2, ignoresCase, limit);
  return {
    path: text2.path,
    version: text2.version,
    digest: digestOf(content),
    matches: hits.map(({ range, line_text }) => ({ range, line_text })),
    is_complete: !isCut
  };
}

// src/verbs/search/project.ts
var nodePath7 = __toESM(require("node:path"));

// src/search/told.ts
var BREAK = 10;
var LINE_BYTES = 4 * 300;
function told5(found3, path, most) {
  const { lines } = found3;
  let [byte, lineStart, line, character] = [0, 0, found3.line, 0];
  const go = (to) => {
    for (let at2 = lines.indexOf(BREAK, byte); at2 >= 0 && at2 < to; at2 = lines.indexOf(BREAK, byte)) {
      [byte, lineStart, line, character] = [at2 + 1, at2 + 1, line + 1, 0];
    }
    character += lines.toString("utf8", byte, to).length;
    byte = to;
    return { line, character };
  };
  return found3.places.slice(0, most).map(([start, end]) => {
    const from = go(start);
    const line_text = lineFrom(lines.toString("utf8", lineStart, lineStart + LINE_BYTES), 0);
    return { path, range: { start: from, end: go(end) }, line_text };
  });
}

// src/verbs/search/project.ts
async function find_in_project(call) {
  const text2 = call.args.text("text");
  const ignoresCase = call.args.flag("ignore_case");
  const isWord2 = call.args.flag("word");
  return search(call, words(text2, { ignoresCase, isWord: isWord2 }));
}
async function regex_search(call) {
  const text2 = call.args.text("pattern");
  const ignoresCase = call.args.flag("ignore_case");
  const isMultiline = call.args.flag("multiline");
  return search(call, expression(text2, { ignoresCase, isMultiline }));
}
function words(text2, how) {
  const fault = faultOf(text2);
  if (fault !== void 0) throw wrong(`\`text\` ${fault}`);
  return { text: text2, isFixed: true, isWord: false, isMultiline: false, ...how };
}
function expression(text2, how) {
  const fault = faultOf2(text2);
  if (fault !== void 0) throw wrong(`\`pattern\` ${fault}`);
  if (text2.includes("\0")) throw wrong("`pattern` cannot hold a NUL");
  return { text: text2, isFixed: false, isWord: false, isMultiline: false, ...how };
}
function engine() {
  if (!ripgrep) throw new Refusal("unsupported", "this editor has no ripgrep of its own to search with");
  return ripgrep;
}
async function search(call, pattern) {
  const path = call.args.maybeText("path");
  const glob = takeGlob(call);
  const also = { hidden: call.args.flag("hidden"), ignored: call.args.flag("ignored") };
  const limit = call.args.number("limit", 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  const { hits, isComplete } = await found2(call, pattern, await groundAt(call, path, glob, also), limit);
  return { matches: hits, files: new Set(hits.map((hit) => hit.path)).size, is_complete: isComplete };
}
async function found2(call, pattern, ground, limit) {
  if (!ground.isFolder) return inText(call, pattern, ground.path, limit);
  const unsaved = await unsavedIn(call, ground);
  const hits = [];
  const { isComplete } = await engine().folder(pattern, ground.path, ground, call.stop, (some) => {
    if (unsaved.has(some.path) || !ground.wants(some.path)) return true;
    hits.push(...told5(some, nodePath7.join(ground.path, some.path), limit + 1 - hits.length));
    return hits.length <= limit;
  });
  const isCut = hits.length > limit;
  for (const text2 of unsaved.values()) hits.push(...(await inText(call, pattern, text2.path, limit)).hits);
  hits.sort(
    (a, b) => order(a.path, b.path) || a.range.start.line - b.range.start.line || a.range.start.character - b.range.start.character
  );
  return { hits: hits.slice(0, limit), isComplete: isComplete && !isCut && hits.length <= limit };
}
async function inText(call, pattern, path, limit) {
  const text2 = call.desk.texts.at(path) ?? await call.desk.texts.open(call.desk.roots.uri(path));
  const content = text2.document.getText();
  const { hits, isCut } = hitsAt(content, await engine().text(pattern, content, limit, call.stop), limit);
  return { hits: hits.map(({ range, line_text }) => ({ path: text2.path, range, line_text })), isComplete: !isCut };
}
function order(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

// src/verbs/search/replace.ts
var vscode47 = __toESM(require("vscode"));
var MAX_FILES4 = 200;
var MAX_NEW = 8 << 20;
async function replace_text(call) {
  const [text2, expressed] = [call.args.maybeText("text"), call.args.maybeText("pattern")];
  const newText = call.args.text("new_text");
  const path = call.args.maybeText("path");
  const glob = takeGlob(call);
  const ignoresCase = call.args.flag("ignore_case");
  const isPreview = call.args.flag("preview");
  const limit = call.args.number("limit", 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  if (newText.includes("\0")) throw wrong("a text cannot hold a NUL");
  const pattern = patternOf(text2, expressed, ignoresCase);
  const ground = await groundAt(call, path, glob, { hidden: false, ignored: false });
  const { hits, isComplete } = await found2(call, pattern, ground, limit);
  const paths = [...new Set(hits.map((hit) => hit.path))];
  if (paths.length > MAX_FILES4)
    throw tooMany(`it stands in ${paths.length} files; at most ${MAX_FILES4} can be changed at once`);
  if (hits.length >= limit && !isComplete)
    throw tooMany(`it stands in more than ${limit} places, and \`limit\` is that`);
  const plan = [];
  for (const one of paths) {
    const open = await call.desk.texts.open(await call.desk.roots.file(one));
    const edits = await editsOf(call, pattern, open, newText, limit);
    if (edits.length > 0) plan.push({ text: open, edits });
  }
  const replacements = plan.reduce((sum, { edits }) => sum + edits.length, 0);
  if (replacements > limit) throw new Refusal("failed", "the files change while they are searched; try again");
  const bytes = plan.flatMap(({ edits }) => edits).reduce((sum, edit) => sum + Buffer.byteLength(edit.newText), 0);
  if (bytes > MAX_NEW) throw tooMany(`it would put in more than ${MAX_NEW} bytes`);
  if (isPreview) {
    const [files3, whole] = [
      plan.map(({ text: { path: file, version }, edits }) => toldFile(file, version, edits)),
      differenceOf(plan)
    ];
    const diff = cut2(whole);
    return { files: files3, replacements, is_preview: true, is_complete: isComplete && diff.length === whole.length, diff };
  }
  const changes = new Map(plan.map(({ text: { uri, version }, edits }) => [uri, { version, edits }]));
  const made4 = plan.length > 0 ? await call.desk.texts.apply(changes, call.session, "replace") : [];
  const files2 = made4.map((after, i) => toldFile(after.path, after.version, plan[i]?.edits ?? []));
  return { files: files2, replacements, is_preview: false, is_complete: isComplete };
}
function patternOf(text2, expressed, ignoresCase) {
  if (text2 !== void 0 && expressed !== void 0) throw wrong("give `text` or `pattern`, not both");
  if (text2 !== void 0) return words(text2, { ignoresCase });
  if (expressed !== void 0) return expression(expressed, { ignoresCase });
  throw wrong("`text` is missing: a string; or `pattern`, an expression");
}
async function editsOf(call, pattern, text2, newText, limit) {
  const { document } = text2;
  const content = document.getText();
  const places = pattern.isFixed ? find2(content, pattern.text, pattern.ignoresCase, limit + 1).hits.map(({ start, end }) => [start, end]) : await engine().text(pattern, content, limit + 1, call.stop);
  const news = pattern.isFixed ? void 0 : await engine().replaced(pattern, content, newText, call.stop);
  if (news && news.length < places.length)
    throw new Refusal("failed", `${JSON.stringify(text2.path)} could not be searched to its end; try again`);
  return places.map(([start, end], i) => {
    const range = new vscode47.Range(document.positionAt(start), document.positionAt(end));
    return { edit: new vscode47.TextEdit(range, news?.[i] ?? newText), old: content.slice(start, end) };
  }).filter(({ edit, old }) => edit.newText !== old).map(({ edit }) => edit);
}
function toldFile(path, version, edits) {
  return { path, version, replacements: edits.length };
}
function tooMany(why) {
  return new Refusal("too_large", `${why}; \`path\` and \`glob\` narrow it down. Nothing was changed`);
}

// src/verbs/sync.ts
var vscode48 = __toESM(require("vscode"));
var SCREEN = 50;
var MOST_LINES3 = 4294967295;
var TOLD_WITHIN_MS2 = 250;
async function getCursorPos({ args, desk }) {
  const path = args.maybeText("path");
  args.done();
  const text2 = await lookedAt(desk, path);
  const position = desk.spots.of(text2.document).active;
  return { path: text2.path, position: toldPlace(position), ui: true };
}
async function setCursorPos({ args, desk, session }) {
  const path = args.text("path");
  const position = args.position("position");
  if (!position) throw wrong("`position` is missing: {line, character}");
  const range = args.range("selection");
  args.done();
  const text2 = await desk.texts.open(await desk.roots.file(path));
  const lines = new Lines(text2.document.getText());
  for (const place of [position, range?.start, range?.end]) {
    const offset = place === void 0 ? 0 : lines.offset(place);
    if (typeof offset === "string") throw wrong(offset);
  }
  const selection = selectionOf(
    lines.nearest(position),
    range && { start: lines.nearest(range.start), end: lines.nearest(range.end) }
  );
  const told6 = /* @__PURE__ */ new Map([["cursor_moved", { position: toldPlace(selection.active) }]]);
  if (range) told6.set("selection_changed", { range: toldSpan(selection) });
  const endings = [...told6.keys()].map((event) => desk.doing.note(event, text2.path, session));
  await show(text2.document, selection);
  await desk.spots.until(text2.document, (spot) => spot.isEqual(selection), TOLD_WITHIN_MS2);
  for (const [i, [event, where]] of [...told6].entries()) {
    if (endings[i]?.()) desk.voice.tell(event, text2.path, { ...where, by: session });
  }
  return { path: text2.path, position: toldPlace(selection.active), ui: true };
}
function selectionOf(cursor, range) {
  const at2 = (place) => new vscode48.Position(place.line, place.character);
  if (!range) return new vscode48.Selection(at2(cursor), at2(cursor));
  const [start, end] = [at2(range.start), at2(range.end)];
  return at2(cursor).isEqual(start) ? new vscode48.Selection(end, start) : new vscode48.Selection(start, end);
}
async function getSelection({ args, desk }) {
  const path = args.maybeText("path");
  args.done();
  const text2 = await lookedAt(desk, path);
  const range = text2.document.validateRange(desk.spots.of(text2.document));
  return { path: text2.path, range: toldSpan(range), text: text2.document.getText(range), ui: true };
}
async function syncViewport({ args, desk, session }) {
  const path = args.text("path");
  const first = args.number("first_line", 0, MOST_LINES3);
  const last = args.number("last_line", 0, MOST_LINES3);
  args.done();
  if (first !== void 0 && last !== void 0 && first > last) throw wrong("`first_line` comes after `last_line`");
  const text2 = await desk.texts.open(await desk.roots.file(path));
  const before = visible2(text2.document);
  const isUntold = desk.doing.note("viewport_changed", text2.path, session);
  const editor = before?.editor ?? await show(text2.document);
  if (first !== void 0 || last !== void 0) {
    const end = text2.document.lineCount - 1;
    const from = Math.min(first ?? Math.max(0, (last ?? 0) - SCREEN + 1), end);
    const to = Math.min(Math.max(last ?? from, from), end);
    editor.revealRange(new vscode48.Range(from, 0, to, 0), vscode48.TextEditorRevealType.AtTop);
    await desk.spots.untilViewport(text2.document, TOLD_WITHIN_MS2);
  }
  const now = visible2(text2.document);
  const lines = { first_line: now?.first ?? 0, last_line: now?.last ?? 0 };
  const isMoved = before?.first !== lines.first_line || before.last !== lines.last_line;
  if (isUntold() && isMoved) desk.voice.tell("viewport_changed", text2.path, { ...lines, by: session });
  return { path: text2.path, ...lines, ui: true };
}
function visible2(document) {
  const editor = vscode48.window.visibleTextEditors.find((one) => one.document === document);
  const [first, last] = [editor?.visibleRanges[0], editor?.visibleRanges.at(-1)];
  return editor && first && last ? { editor, first: first.start.line, last: last.end.line } : void 0;
}
async function lookedAt(desk, path) {
  if (path !== void 0) return desk.texts.open(await desk.roots.file(path));
  const document = vscode48.window.activeTextEditor?.document;
  const text2 = document && desk.texts.of(document);
  if (!text2) throw new Refusal("not_found", "no buffer is active; name one by `path`, or switch_buffer");
  return text2;
}
var sync = {
  get_cursor_pos: getCursorPos,
  set_cursor_pos: setCursorPos,
  get_selection: getSelection,
  sync_viewport: syncViewport
};

// src/verbs.ts
var verbs = new Map(
  Object.entries({
    ...files,
    ...buffers,
    ...panes,
    ...sync,
    get_errors,
    get_completions,
    goto_definition,
    format_code,
    get_code_lens,
    apply_quick_fix,
    refactor_symbol,
    find_in_file,
    // Without ripgrep the built-in editor searches the files, and nothing is replaced in several.
    ...ripgrep ? { find_in_project, regex_search, replace_text } : {}
  })
);

// src/voice.ts
var MAX_EVENTS_PER_SECOND = 400;
var MOVES_EVERY_MS = 20;
var MAX_MOVING = 256;
var CATCH_UP_MS = 500;
var Voice = class {
  /** `buffers` lists all that is open, for the state. */
  constructor(buffers2) {
    this.buffers = buffers2;
  }
  buffers;
  sender;
  sequence = 0;
  second = 0;
  toldThisSecond = 0;
  moving = /* @__PURE__ */ new Map();
  behind;
  dispose() {
    this.disconnected();
  }
  /** Begins anew: what was told on another connection, this one does not know. */
  connected(sender) {
    this.disconnected();
    this.sender = sender;
    this.sequence = 0;
    this.tellState();
  }
  disconnected() {
    this.sender = void 0;
    clearTimeout(this.behind);
    this.behind = void 0;
    for (const { timer } of this.moving.values()) clearTimeout(timer);
    this.moving.clear();
  }
  /** Tells all that is open. */
  tellState() {
    this.sender?.({ type: "state", seq: this.sequence, buffers: this.buffers() });
  }
  /** Tells that something has happened. With nobody there it is told to nobody: the state is told to who comes. */
  tell(event, path, data = {}) {
    if (!this.sender) return;
    if (!this.hasRoom()) return this.catchUp();
    const seq = this.sequence + 1;
    const sent = this.sender({ type: "event", event, seq, data: path === void 0 ? data : { path, ...data } });
    if (sent) this.sequence = seq;
    else this.catchUp();
  }
  /** The same of what moves all the time: the first is told at once, of those right after it only the last. */
  tellMoving(event, path, data) {
    const key = `${event}
${path}`;
    const tell2 = () => this.tell(event, path, data());
    const moving = this.moving.get(key);
    if (moving) {
      moving.next = tell2;
      return;
    }
    tell2();
    if (this.moving.size < MAX_MOVING) this.rest(key);
  }
  rest(key) {
    const timer = setTimeout(() => {
      const next = this.moving.get(key)?.next;
      this.moving.delete(key);
      if (!next) return;
      next();
      this.rest(key);
    }, MOVES_EVERY_MS);
    this.moving.set(key, { timer, next: void 0 });
  }
  hasRoom() {
    const second = Math.floor(Date.now() / 1e3);
    if (second !== this.second) [this.second, this.toldThisSecond] = [second, 0];
    this.toldThisSecond += 1;
    return this.toldThisSecond <= MAX_EVENTS_PER_SECOND;
  }
  /** Something was not told. The state says what it came to, once there is room again. */
  catchUp() {
    this.behind ??= setTimeout(() => {
      this.behind = void 0;
      const sent = this.sender?.({ type: "state", seq: this.sequence, buffers: this.buffers() });
      if (sent === false) this.catchUp();
    }, CATCH_UP_MS);
  }
};

// src/extension.ts
function activate(context) {
  const log = vscode49.window.createOutputChannel("Prism", { log: true });
  const roots = new Roots();
  const texts2 = new Texts(roots, log);
  const spots = new Spots();
  const mirror = new Mirror(texts2);
  const voice = new Voice(() => mirror.state());
  const line = new Line(self(context));
  const desk = { roots, texts: texts2, spots, voice, line, doing: new Doing(), log };
  context.subscriptions.push(
    log,
    roots,
    texts2,
    spots,
    voice,
    line,
    // What becomes of files and repositories is told by the daemon, which watches every granted folder itself: told from here
    // as well, each would come twice.
    watchTexts(desk, mirror),
    watchWindows(desk),
    watchAnalysis(desk),
    watchProject(desk),
    showPerson(desk),
    showRuns(desk),
    watchChat(desk),
    offerHub(desk, context)
  );
  line.start(desk, verbs);
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  activate
});
