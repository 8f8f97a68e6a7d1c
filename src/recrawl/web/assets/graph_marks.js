// How sigma draws pages: one WebGL program with a shape for each change class, never smaller than can be seen.
(() => {
  "use strict";
  const { recrawl } = window;
  const { FLOAT, UNSIGNED_BYTE, TRIANGLES } = WebGLRenderingContext;

  const VERTEX = `
attribute vec4 a_id;
attribute vec4 a_color;
attribute vec2 a_position;
attribute float a_size;
attribute float a_shape;
attribute float a_angle;
uniform mat3 u_matrix;
uniform float u_sizeRatio;
uniform float u_correctionRatio;
varying vec4 v_color;
varying vec2 v_place;
varying float v_feather;
varying float v_shape;
void main() {
  float least = a_shape < 1.5 ? 1.0 : 2.2;
  float pixels = max(a_size / u_sizeRatio, least);
  float reach = pixels * u_correctionRatio * 4.0;
  vec2 away = vec2(cos(a_angle), sin(a_angle));
  gl_Position = vec4((u_matrix * vec3(a_position + reach * away, 1.0)).xy, 0.0, 1.0);
  v_place = 2.0 * away;
  v_feather = 1.0 / pixels;
  v_shape = a_shape;
#ifdef PICKING_MODE
  v_color = a_id;
#else
  v_color = a_color;
#endif
  v_color.a *= 255.0 / 254.0;
}`;

  // Each shape as a distance: below 0 inside, in units of the mark's radius. Numbers are those of the change classes;
  // 6 is what is folded, 7 the same unfolded.
  const FRAGMENT = `
precision highp float;
varying vec4 v_color;
varying vec2 v_place;
varying float v_feather;
varying float v_shape;
float outside(vec2 p) {
  float away = length(p);
  if (v_shape < 0.5) return max(away - 1.0, 0.55 - away);
  if (v_shape < 1.5) return away - 1.0;
  if (v_shape < 2.5) return max(abs(p.x) * 0.866 + p.y * 0.5, -p.y) - 0.5;
  if (v_shape < 3.5) return max(abs(p.x), abs(p.y)) - 0.72;
  if (v_shape < 4.5) return max(min(abs(p.x + p.y), abs(p.x - p.y)) * 0.707 - 0.24, max(abs(p.x), abs(p.y)) - 0.72);
  if (v_shape < 5.5) return (abs(p.x) + abs(p.y) - 1.0) * 0.707;
  return away - 1.0;
}
void main() {
  float gap = outside(v_place);
#ifdef PICKING_MODE
  if (length(v_place) > 1.0) discard;
  gl_FragColor = v_color;
#else
  float cover = clamp(0.5 - gap / v_feather, 0.0, 1.0);
  if (v_shape > 5.5) {
    float rim = clamp(1.0 + (gap + v_feather) / v_feather, 0.0, 1.0);
    cover *= mix(v_shape > 6.5 ? 0.10 : 0.38, v_shape > 6.5 ? 0.5 : 1.0, rim);
  }
  gl_FragColor = v_color * cover;
#endif
}`;

  const NodeProgram = window.Sigma && window.Sigma.rendering.NodeProgram;
  if (!NodeProgram) return;
  const { floatColor } = window.Sigma.utils;

  class Marks extends NodeProgram {
    getDefinition() {
      return {
        VERTICES: 3, VERTEX_SHADER_SOURCE: VERTEX, FRAGMENT_SHADER_SOURCE: FRAGMENT, METHOD: TRIANGLES,
        UNIFORMS: ["u_sizeRatio", "u_correctionRatio", "u_matrix"],
        ATTRIBUTES: [
          { name: "a_position", size: 2, type: FLOAT }, { name: "a_size", size: 1, type: FLOAT },
          { name: "a_color", size: 4, type: UNSIGNED_BYTE, normalized: true },
          { name: "a_id", size: 4, type: UNSIGNED_BYTE, normalized: true },
          { name: "a_shape", size: 1, type: FLOAT },
        ],
        CONSTANT_ATTRIBUTES: [{ name: "a_angle", size: 1, type: FLOAT }],
        CONSTANT_DATA: [[0], [(2 * Math.PI) / 3], [(4 * Math.PI) / 3]],
      };
    }

    processVisibleItem(id, start, data) {
      this.array.set([data.x, data.y, data.size, floatColor(data.color), id, data.shape], start);
    }

    setUniforms({ sizeRatio, correctionRatio, matrix }, { gl, uniformLocations }) {
      gl.uniform1f(uniformLocations.u_correctionRatio, correctionRatio);
      gl.uniform1f(uniformLocations.u_sizeRatio, sizeRatio);
      gl.uniformMatrix3fv(uniformLocations.u_matrix, false, matrix);
    }
  }

  recrawl.site.Marks = Marks;
  recrawl.site.SHAPE = { folded: 6, unfolded: 7 };
})();
