import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineAsyncComponent } from 'vue';
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    // Only its own page loads it, and with it the limiter.
    app.component(
      'PlayGround',
      defineAsyncComponent(() => import('../../playground/PlayGround.vue')),
    );
  },
} satisfies Theme;
