import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineAsyncComponent, h } from 'vue';
import HeroPicture from './HeroPicture.vue';
import NotFound from './NotFound.vue';
import './style.css';

/** VitePress's first page has no main landmark. */
function markMain(inside: Element): void {
  inside.closest('.VPHome')?.setAttribute('role', 'main');
}

export default {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'not-found': () => h(NotFound),
      'home-hero-image': () => h(HeroPicture),
      'home-hero-before': () => h('span', { onVnodeMounted: ({ el }) => markMain(el as Element) }),
    }),
  enhanceApp: ({ app }) => {
    // Only its own page loads it, and with it the limiter.
    app.component(
      'PlayGround',
      defineAsyncComponent(() => import('../../playground/PlayGround.vue')),
    );
  },
} satisfies Theme;
