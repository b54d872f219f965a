import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineAsyncComponent, h } from 'vue';
import NotFound from './NotFound.vue';
import './style.css';

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'not-found': () => h(NotFound) }),
  enhanceApp: ({ app }) => {
    // Only its own page loads it, and with it the limiter.
    app.component(
      'PlayGround',
      defineAsyncComponent(() => import('../../playground/PlayGround.vue')),
    );
  },
} satisfies Theme;
